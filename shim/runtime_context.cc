// What a call is made with: profile, delegate, absolute places.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "shim/runtime_verbs.h"

namespace benchsand {

namespace {

std::string absolute(const std::string& path) {
  std::error_code failed;
  const auto whole = std::filesystem::absolute(path, failed);
  return failed ? path : whole.lexically_normal().string();
}

bool is_there(const std::string& delegate) {
  return find_delegate_path(delegate).has_value();
}

}  // namespace

RuntimeContext make_runtime_context(const std::string& called_as, const std::string& profile, RuntimeCall& call) {
  call.root = canonical_root(call.root.empty() ? "" : absolute(call.root));
  call.bundle = absolute(call.bundle);
  while (call.bundle.size() > 1 && call.bundle.back() == '/') call.bundle.pop_back();
  return {called_as, profile};
}

Result<std::optional<std::string>> read_house_file(const std::string& path) {
  const auto file = sys::openat(sys::kHere, path, O_RDONLY);
  if (!file && file.error().error_number == ENOENT) return std::nullopt;
  if (!file) return std::unexpected(file.error());
  const auto facts = TRY(sys::fstat(*file, path));
  if (!S_ISREG(facts.st_mode) || facts.st_uid != 0 || (facts.st_mode & 022) != 0)
    return fault("use " + path + ": it must be a file of root's that nobody else may write (chown root, chmod go-w)");
  return TRY(sys::reread(*file, path));
}

Result<ProfileText> runtime_profile(const RuntimeContext& context) {
  TRY(read_house_file("/etc/benchsand/profiles/" + context.profile + ".yaml"));
  return find_profile(context.profile);
}

Result<RuntimeSettings> load_runtime_settings(const std::string& path) {
  const auto text = TRY(read_house_file(path));
  return text ? parse_runtime_settings(*text, path) : RuntimeSettings{};
}

Result<std::string> choose_delegate() {
  if (const auto settings = TRY(load_runtime_settings()); settings.delegate) return *settings.delegate;
  // Where crun would refuse the host's cgroups, runc does the same work.
  const auto cgroup = TRY(CgroupHost::look());
  const bool crun_fits = is_there("crun") && delegate_fits(cgroup, "crun").has_value();
  return std::string(crun_fits || !is_there("runc") ? "crun" : "runc");
}

Result<int> pass_through(const RuntimeCall& call) {
  const std::string delegate = TRY(choose_delegate()), path = TRY(find_delegate_path(delegate));
  std::vector<std::string> words = passthrough_arguments(call, delegate);
  words.insert(words.begin(), delegate);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execve(path.c_str(), argv.data(), environ);
  return sys_error("execve", path, errno);
}

}  // namespace benchsand
