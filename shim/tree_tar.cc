#include "shim/tree_tar.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "oci/sha256.h"
#include "oci/tar_header.h"

namespace benchsand {

namespace {

// What is still to be visited, the next one last.
struct Visit {
  std::string path;
  struct stat facts {};
};

Result<void> push_content(const Fd& top, const std::string& path, std::vector<Visit>& visits) {
  const Fd dir = TRY(sys::openat2_beneath(top.get(), path.empty() ? "." : path, O_RDONLY | O_DIRECTORY));
  auto names = TRY(sys::list_directory(dir.get(), "."));
  std::reverse(names.begin(), names.end());
  for (const auto& name : names)
    visits.push_back(
        {path.empty() ? name : path + "/" + name, TRY(sys::fstatat(dir.get(), name, AT_SYMLINK_NOFOLLOW))});
  return {};
}

std::string facts_line(const Visit& visit) {
  const auto& facts = visit.facts;
  std::string line;
  for (const auto number :
       {static_cast<std::uint64_t>(facts.st_mode), static_cast<std::uint64_t>(facts.st_uid),
        static_cast<std::uint64_t>(facts.st_gid), static_cast<std::uint64_t>(facts.st_size),
        static_cast<std::uint64_t>(facts.st_ino), static_cast<std::uint64_t>(facts.st_nlink),
        static_cast<std::uint64_t>(facts.st_mtim.tv_sec), static_cast<std::uint64_t>(facts.st_mtim.tv_nsec),
        static_cast<std::uint64_t>(facts.st_ctim.tv_sec), static_cast<std::uint64_t>(facts.st_ctim.tv_nsec)})
    line += std::to_string(number) + " ";
  return line + visit.path + std::string(1, '\0');
}

}  // namespace

Result<std::string> tree_fingerprint(const Fd& top) {
  Sha256 digest;
  std::vector<Visit> visits;
  const auto facts = TRY(sys::fstat(top, "."));
  digest.update(std::to_string(facts.st_dev) + " " + std::to_string(facts.st_ino) + std::string(1, '\0'));
  TRY_VOID(push_content(top, "", visits));
  while (!visits.empty()) {
    const Visit visit = std::move(visits.back());
    visits.pop_back();
    digest.update(facts_line(visit));
    if (S_ISDIR(visit.facts.st_mode)) TRY_VOID(push_content(top, visit.path, visits));
  }
  return digest.hex();
}

struct TreeTar::Parts {
  const Fd& top;
  std::vector<Visit> visits{};
  std::string ready{};  // made, and not read yet
  std::size_t taken = 0;
  Fd file{};  // whose content comes next, and how much of it
  std::string path{};
  std::uint64_t left = 0;
  std::map<std::pair<dev_t, ino_t>, std::string> linked{};
  bool closed = false;

  Result<void> step() {
    if (left > 0) return add_content();
    if (visits.empty()) {
      closed = true;
      ready += tar_end();
      return {};
    }
    const Visit visit = std::move(visits.back());
    visits.pop_back();
    if (S_ISDIR(visit.facts.st_mode)) TRY_VOID(push_content(top, visit.path, visits));
    return add_header(visit);
  }

  Result<void> add_header(const Visit& visit) {
    const auto& facts = visit.facts;
    TarHeader header{visit.path, '0', "", facts.st_mode, facts.st_uid, facts.st_gid, 0, facts.st_mtim.tv_sec};
    if (S_ISDIR(facts.st_mode)) {
      header.type = '5';
    } else if (!S_ISREG(facts.st_mode) && !S_ISLNK(facts.st_mode)) {
      return {};
    } else if (const std::string first = first_name(visit); !first.empty()) {
      header.type = '1';
      header.link = first;
    } else if (S_ISLNK(facts.st_mode)) {
      header.type = '2';
      header.link = TRY(target_of(visit.path));
    } else {
      header.size = static_cast<std::uint64_t>(facts.st_size);
      file = TRY(sys::openat2_beneath(top.get(), visit.path, O_RDONLY | O_NONBLOCK));
    }
    path = visit.path;
    left = header.size;
    ready += tar_header(header);
    return {};
  }

  // The name under which the same file came before; empty: this is the first.
  std::string first_name(const Visit& visit) {
    if (visit.facts.st_nlink < 2) return "";
    const auto [found, added] = linked.emplace(std::pair(visit.facts.st_dev, visit.facts.st_ino), visit.path);
    return added ? "" : found->second;
  }

  Result<std::string> target_of(const std::string& link) const {
    const std::size_t slash = link.rfind('/');
    const std::string above = slash == std::string::npos ? "." : link.substr(0, slash);
    const Fd dir = TRY(sys::openat2_beneath(top.get(), above, O_RDONLY | O_DIRECTORY));
    return sys::readlinkat(dir.get(), slash == std::string::npos ? link : link.substr(slash + 1));
  }

  Result<void> add_content() {
    std::array<char, 65536> bytes;
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, bytes.size()));
    const ssize_t n = ::read(file.get(), bytes.data(), wanted);
    if (n < 0) return sys_error("read", path, errno);
    if (n == 0) return fault("make a tar archive of " + path + ": it became shorter meanwhile");
    ready.append(bytes.data(), static_cast<std::size_t>(n));
    left -= static_cast<std::uint64_t>(n);
    size_so_far += static_cast<std::uint64_t>(n);
    if (left > 0) return {};
    ready += tar_padding(size_so_far);
    size_so_far = 0;
    return {};
  }
  std::uint64_t size_so_far = 0;  // of the file
};

TreeTar::TreeTar(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TreeTar::TreeTar(TreeTar&&) noexcept = default;
TreeTar& TreeTar::operator=(TreeTar&&) noexcept = default;
TreeTar::~TreeTar() = default;

Result<TreeTar> TreeTar::of(const Fd& top) {
  auto parts = std::make_unique<Parts>(Parts{top});
  TRY_VOID(push_content(top, "", parts->visits));
  return TreeTar(std::move(parts));
}

Result<std::size_t> TreeTar::read(char* buffer, std::size_t size) {
  while (parts_->taken == parts_->ready.size() && !parts_->closed) {
    parts_->ready.clear();
    parts_->taken = 0;
    TRY_VOID(parts_->step());
  }
  const std::size_t n = std::min(size, parts_->ready.size() - parts_->taken);
  std::memcpy(buffer, parts_->ready.data() + parts_->taken, n);
  parts_->taken += n;
  return n;
}

}  // namespace benchsand
