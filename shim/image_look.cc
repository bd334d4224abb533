#include "shim/image_look.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace benchsand {

namespace {

constexpr std::size_t kLargestGitFile = 1 << 20, kMostGitFiles = 2000, kMostRepositories = 100;
constexpr int kDeepest = 600;

std::string read_some(const Fd& dir, const std::string& name, std::size_t most) {
  const auto file = sys::openat(dir.get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file) return "";
  const auto facts = sys::fstat(*file, name);
  if (!facts || !S_ISREG(facts->st_mode)) return "";
  std::string text(most, '\0');
  std::size_t size = 0;
  for (ssize_t n = 1; n > 0 && size < most; size += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
    n = ::pread(file->get(), text.data() + size, most - size, static_cast<off_t>(size));
  text.resize(size);
  return text;
}

class Look {
 public:
  Look(LintFindings& findings, std::uint64_t deadline) : findings_(findings), deadline_(deadline) {}

  void directory(const Fd& dir, const std::string& path, int depth) {
    const auto names = sys::list_directory(dir.get(), ".");
    if (!names || depth > kDeepest) return;
    if (is_repository(*names)) repository(dir, path);
    for (const auto& name : *names) {
      if (sys::monotonic_us() > deadline_) findings_.cut_short = true;
      if (findings_.cut_short) return;
      const auto facts = sys::fstatat(dir.get(), name, AT_SYMLINK_NOFOLLOW);
      if (!facts) continue;
      const std::string inside = path + "/" + name;
      if (S_ISDIR(facts->st_mode)) {
        if (const auto below = sys::open_directory(dir.get(), name)) directory(*below, inside, depth + 1);
      } else {
        file(dir, name, inside, *facts);
      }
    }
  }

 private:
  static bool is_repository(const std::vector<std::string>& names) {
    return std::all_of(std::begin(kOfRepository), std::end(kOfRepository),
                       [&](const char* name) { return std::binary_search(names.begin(), names.end(), name); });
  }

  void file(const Fd& dir, const std::string& name, const std::string& path, const struct stat& facts) {
    if (is_engine_socket(path)) findings_.engine_sockets.add(path);
    if (!S_ISREG(facts.st_mode)) return;
    if ((facts.st_mode & (S_ISUID | S_ISGID)) != 0 && (facts.st_mode & 0111) != 0) findings_.set_user_id.add(path);
    if (may_be_secret(path) && is_secret(path, read_some(dir, name, kLintHead))) findings_.secrets.add(path);
  }

  // What was packed first: a loose ref is newer.
  void repository(const Fd& dir, const std::string& path) {
    if (findings_.repositories.size() == kMostRepositories) return;
    GitFacts facts{path, "", {}};
    note_git_file(facts, "packed-refs", read_some(dir, "packed-refs", kLargestGitFile));
    git_files_ = 0;
    git_tree(dir, "refs", facts);
    settle_git_head(facts, read_some(dir, "HEAD", kLintHead));
    for (const char* name : {"ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD"})
      note_git_file(facts, name, read_some(dir, name, kLintHead));
    git_tree(dir, "logs", facts);
    findings_.repositories.push_back(std::move(facts));
  }

  void git_tree(const Fd& dir, const std::string& name, GitFacts& facts) {
    const auto names = sys::list_directory(dir.get(), name);
    if (!names) return;
    for (const auto& inner : *names) {
      const std::string path = name + "/" + inner;
      if (++git_files_ > kMostGitFiles || std::count(path.begin(), path.end(), '/') > 16) return;
      const auto found = sys::fstatat(dir.get(), path, AT_SYMLINK_NOFOLLOW);
      if (found && S_ISDIR(found->st_mode)) git_tree(dir, path, facts);
      if (found && S_ISREG(found->st_mode)) note_git_file(facts, path, read_some(dir, path, kLargestGitFile));
    }
  }

  static constexpr const char* kOfRepository[] = {"HEAD", "objects", "refs"};
  LintFindings& findings_;
  std::uint64_t deadline_;
  std::size_t git_files_ = 0;
};

}  // namespace

LintFindings look_over_image(const Fd& root, std::uint64_t within_us) {
  LintFindings findings;
  Look(findings, sys::monotonic_us() + within_us).directory(root, "", 0);
  return findings;
}

}  // namespace benchsand
