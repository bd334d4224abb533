#include "shim/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace benchsand {

// After EINTR the descriptor is closed all the same on Linux; closing again could hit somebody else's.
Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

std::unexpected<Error> sys_error(std::string_view call, std::string_view object, int error_number) {
  return std::unexpected(Error{Error::Kind::fault,
                               std::string(call) + " " + std::string(object) + ": " + std::strerror(error_number),
                               error_number});
}

namespace sys {

namespace {

template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

Result<std::string> read_to_end(int fd, const std::string& name, std::size_t most) {
  std::string text;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t n = retry([&] { return ::read(fd, buffer.data(), buffer.size()); });
    if (n < 0) return sys_error("read", name, errno);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > most) return fault("read " + name + ": larger than " + std::to_string(most) + " bytes");
  }
}

}  // namespace

Result<Fd> openat(int dir, const std::string& path, int flags, mode_t mode) {
  const int fd = retry([&] { return ::openat(dir, path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode); });
  if (fd < 0) return sys_error("open", path, errno);
  return Fd(fd);
}

Result<Fd> open_directory(int dir, const std::string& path) {
  return openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

namespace {

Result<Fd> openat2(int dir, const std::string& path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOCTTY);
  how.resolve = resolve | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  const long fd = retry([&] { return ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how); });
  if (fd < 0) return sys_error("openat2", path, errno);
  return Fd(static_cast<int>(fd));
}

}  // namespace

Result<Fd> openat2_beneath(int dir, const std::string& path, int flags) {
  return openat2(dir, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

Result<Fd> openat2_in_root(int dir, const std::string& path, int flags, Links links) {
  return openat2(dir, path, flags, RESOLVE_IN_ROOT | (links == Links::refused ? RESOLVE_NO_SYMLINKS : 0));
}

Result<std::string> read_file(int dir, const std::string& path, std::size_t most) {
  const Fd fd = TRY(openat(dir, path, O_RDONLY));
  return read_to_end(fd.get(), path, most);
}

Result<std::string> reread(const Fd& fd, const std::string& name) {
  std::array<char, 16384> buffer;
  const ssize_t n = retry([&] { return ::pread(fd.get(), buffer.data(), buffer.size(), 0); });
  if (n < 0) return sys_error("read", name, errno);
  if (static_cast<std::size_t>(n) == buffer.size()) return fault("read " + name + ": larger than one read");
  return std::string(buffer.data(), static_cast<std::size_t>(n));
}

Result<void> write_all(const Fd& fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t n = retry([&] { return ::write(fd.get(), bytes.data(), bytes.size()); });
    if (n < 0) return sys_error("write", name, errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> write_file(int dir, const std::string& path, std::string_view bytes) {
  const Fd fd = TRY(openat(dir, path, O_WRONLY));
  const ssize_t n = retry([&] { return ::write(fd.get(), bytes.data(), bytes.size()); });
  if (n < 0) return sys_error("write", path, errno);
  if (static_cast<std::size_t>(n) != bytes.size()) return fault("write " + path + ": short write");
  return {};
}

Result<void> create_file(int dir, const std::string& path, std::string_view bytes, mode_t mode) {
  const Fd fd = TRY(openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  return write_all(fd, bytes, path);
}

Result<Fd> read_only_mount(const Fd& fd, const std::string& name) {
  const long copy = ::syscall(SYS_open_tree, fd.get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  if (copy < 0) return sys_error("open_tree", name, errno);
  Fd mount(static_cast<int>(copy));
  TRY_VOID(set_mount_attributes(mount, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, name));
  return mount;
}

namespace {

Result<void> mount_setattr(const Fd& mount, mount_attr wanted, const std::string& name) {
  if (::syscall(SYS_mount_setattr, mount.get(), "", AT_EMPTY_PATH, &wanted, sizeof wanted) != 0)
    return sys_error("mount_setattr", name, errno);
  return {};
}

}  // namespace

Result<void> set_mount_attributes(const Fd& mount, std::uint64_t attributes, const std::string& name) {
  mount_attr wanted{};
  wanted.attr_set = attributes;
  return mount_setattr(mount, wanted, name);
}

Result<void> clear_mount_attributes(const Fd& mount, std::uint64_t attributes, const std::string& name) {
  mount_attr wanted{};
  wanted.attr_clr = attributes;
  return mount_setattr(mount, wanted, name);
}

Result<void> mkdirat(int dir, const std::string& path, mode_t mode) {
  if (::mkdirat(dir, path.c_str(), mode) != 0) return sys_error("mkdir", path, errno);
  return {};
}

Result<void> unlinkat(int dir, const std::string& path, int flags) {
  if (::unlinkat(dir, path.c_str(), flags) != 0)
    return sys_error(flags & AT_REMOVEDIR ? "rmdir" : "unlink", path, errno);
  return {};
}

Result<void> renameat(int dir, const std::string& from, const std::string& to, Over over) {
  const unsigned int flags = over == Over::nothing ? RENAME_NOREPLACE : 0;
  if (::renameat2(dir, from.c_str(), dir, to.c_str(), flags) != 0)
    return sys_error("rename", from + " to " + to, errno);
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view bytes, mode_t mode) {
  const auto facts = fstatat(kHere, path, AT_SYMLINK_NOFOLLOW);
  if (!facts && facts.error().error_number != ENOENT) return std::unexpected(facts.error());
  if (facts && !S_ISREG(facts->st_mode)) return usage("write " + path + ": what is there is not a regular file");
  const std::string temporary = path + "." + TRY(random_hex(6));
  auto made = create_file(kHere, temporary, bytes, mode);
  if (made && ::rename(temporary.c_str(), path.c_str()) != 0)
    made = sys_error("rename", temporary + " to " + path, errno);
  if (!made) static_cast<void>(::unlink(temporary.c_str()));  // the first error is the one to be told
  return made;
}

namespace {

Result<void> create_file_like(const std::string& path, std::string_view bytes, const struct stat& like) {
  const Fd file = TRY(openat(kHere, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  TRY_VOID(write_all(file, bytes, path));
  if (::fchown(file.get(), like.st_uid, like.st_gid) != 0) return sys_error("fchown", path, errno);
  if (::fchmod(file.get(), like.st_mode & 07777) != 0) return sys_error("fchmod", path, errno);
  return fsync(file, path);
}

}  // namespace

Result<void> replace_file_like(const std::string& path, std::string_view bytes, const struct stat& like) {
  const std::string temporary = path + "." + TRY(random_hex(6));
  auto made = create_file_like(temporary, bytes, like);
  if (made && ::rename(temporary.c_str(), path.c_str()) != 0)
    made = sys_error("rename", temporary + " to " + path, errno);
  if (!made) static_cast<void>(::unlink(temporary.c_str()));  // the first error is the one to be told
  return made;
}

Result<std::string> readlinkat(int dir, const std::string& path) {
  std::array<char, 4096> buffer;
  const ssize_t n = ::readlinkat(dir, path.c_str(), buffer.data(), buffer.size());
  if (n < 0) return sys_error("readlink", path, errno);
  if (static_cast<std::size_t>(n) == buffer.size()) return fault("readlink " + path + ": too long");
  return std::string(buffer.data(), static_cast<std::size_t>(n));
}

Result<struct stat> fstatat(int dir, const std::string& path, int flags) {
  struct stat facts {};
  if (::fstatat(dir, path.c_str(), &facts, flags) != 0) return sys_error("stat", path, errno);
  return facts;
}

Result<struct stat> fstat(const Fd& fd, const std::string& name) {
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return sys_error("stat", name, errno);
  return facts;
}

Result<struct statfs> fstatfs(const Fd& fd, const std::string& name) {
  struct statfs facts {};
  if (::fstatfs(fd.get(), &facts) != 0) return sys_error("fstatfs", name, errno);
  return facts;
}

Result<void> fsync(const Fd& fd, const std::string& name) {
  if (::fsync(fd.get()) != 0) return sys_error("fsync", name, errno);
  return {};
}

Result<bool> exists(int dir, const std::string& path) {
  const auto facts = fstatat(dir, path, AT_SYMLINK_NOFOLLOW);
  if (facts) return true;
  if (facts.error().error_number == ENOENT) return false;
  return std::unexpected(facts.error());
}

Result<std::vector<std::string>> list_directory(int dir, const std::string& path) {
  Fd fd = TRY(open_directory(dir, path));
  const int copy = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  DIR* stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!stream) return sys_error("list", path, errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  const int failed = errno;
  ::closedir(stream);
  if (failed != 0) return sys_error("list", path, failed);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

// Somebody else may be removing the same: what is gone is gone.
Result<void> gone_is_fine(Result<void> removed) {
  if (!removed && removed.error().error_number == ENOENT) return {};
  return removed;
}

Result<void> remove_tree_on(int dir, const std::string& path, std::optional<dev_t> device) {
  if (::unlinkat(dir, path.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return sys_error("unlink", path, errno);
  if (::unlinkat(dir, path.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  if (errno != ENOTEMPTY && errno != EEXIST) return sys_error("rmdir", path, errno);
  const auto inside = open_directory(dir, path);
  if (!inside) return gone_is_fine(std::unexpected(inside.error()));
  const dev_t here = TRY(fstat(*inside, path)).st_dev;
  if (device && here != *device) return fault("remove " + path + ": another file system is mounted there");
  for (const auto& name : TRY(list_directory(inside->get(), "."))) TRY_VOID(remove_tree_on(inside->get(), name, here));
  return gone_is_fine(unlinkat(dir, path, AT_REMOVEDIR));
}

}  // namespace

Result<void> remove_tree(int dir, const std::string& path) {
  return remove_tree_on(dir, path, std::nullopt);
}

}  // namespace sys
}  // namespace benchsand
