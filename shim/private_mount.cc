#include "shim/private_mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "shim/new_mount.h"
#include "shim/output_fs.h"

namespace benchsand {

namespace {

constexpr const char* kOtherwise = ", or use a profile that says rootfs_mount: bind (see profiles/README.md)";

std::string by_descriptor(const Fd& fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

std::string layers_of(const Fd& directory, const Fd& above) {
  return (above ? by_descriptor(above) + ":" : "") + by_descriptor(directory);
}

// What the source's own mount forbids stays forbidden.
Result<std::uint64_t> attributes_over(const Fd& source, const std::string& name) {
  struct statvfs facts {};
  if (::fstatvfs(source.get(), &facts) != 0) return sys_error("fstatvfs", name, errno);
  const std::uint64_t noexec = (facts.f_flag & ST_NOEXEC) != 0 ? MOUNT_ATTR_NOEXEC : 0;
  return MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | noexec;
}

// Attributes that another overlay may have left in the source must not lead anywhere: no redirect, no metacopy.
Result<Fd> overlay_over(const std::string& layers, const Fd& directory, const std::string& name) {
  auto overlay = NewMount::open("overlay");
  if (!overlay)
    return fault("mount " + name + ": " + overlay.error().message + "; load the file system: modprobe overlay" +
                 kOtherwise);
  const std::pair<const char*, std::string> options[] = {
      {"source", "none"}, {"lowerdir", layers}, {"redirect_dir", "nofollow"}, {"metacopy", "off"}, {"index", "off"}};
  for (const auto& [key, value] : options) TRY_VOID(overlay->set(key, value));
  auto mount = overlay->create(TRY(attributes_over(directory, name)));
  if (!mount)
    return fault("mount " + name + ": " + mount.error().message +
                 "; the kernel stacks two overlays at most, so keep it on a file system of the host" + kOtherwise);
  return mount;
}

Result<void> copy_bytes(const Fd& from, const Fd& to, std::uint64_t size, const std::string& name) {
  for (std::uint64_t left = size; left > 0;) {
    const ssize_t n = ::sendfile(to.get(), from.get(), nullptr, left);
    if (n < 0) return sys_error("copy", name, errno);
    if (n == 0) return fault("copy " + name + ": the file became shorter");
    left -= static_cast<std::uint64_t>(n);
  }
  char more = 0;
  const ssize_t n = ::read(from.get(), &more, 1);
  if (n < 0) return sys_error("copy", name, errno);
  if (n > 0) return fault("copy " + name + ": there is more in the file than its size says");
  return {};
}

// The copy's identity. Contents, mode, owner and time are the source's.
Result<std::string> copy_into(const Fd& mount, const Fd& opened, const std::string& name, const struct stat& facts) {
  const Fd source = TRY(sys::openat(sys::kHere, by_descriptor(opened), O_RDONLY));
  const Fd copy = TRY(sys::openat(mount.get(), kCopiedFile + 1, O_WRONLY | O_CREAT | O_EXCL, 0600));
  TRY_VOID(copy_bytes(source, copy, static_cast<std::uint64_t>(facts.st_size), name));
  const timespec times[] = {facts.st_mtim, facts.st_mtim};
  if (::fchown(copy.get(), facts.st_uid, facts.st_gid) != 0) return sys_error("fchown", name, errno);
  if (::fchmod(copy.get(), facts.st_mode & 0777) != 0) return sys_error("fchmod", name, errno);
  if (::futimens(copy.get(), times) != 0) return sys_error("futimens", name, errno);
  return identity_of(TRY(sys::fstat(copy, name)));
}

// A mount shows where in its file system it comes from, and a file cannot be the root of one: so a copy, alone in a tmpfs.
Result<PrivateMount> copied_file(const Fd& opened, const std::string& name, const struct stat& facts) {
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  NewMount tmpfs = TRY(NewMount::open("tmpfs"));
  const std::pair<const char*, std::string> options[] = {
      {"size", std::to_string(size + 1)}, {"nr_inodes", "2"}, {"mode", "0755"}};
  for (const auto& [key, value] : options) TRY_VOID(tmpfs.set(key, value));
  PrivateMount made;
  made.mount = TRY(tmpfs.create(0));
  made.inside = kCopiedFile;
  made.identity = TRY(copy_into(made.mount, opened, name, facts));
  TRY_VOID(sys::set_mount_attributes(made.mount, TRY(attributes_over(opened, name)), name));
  return made;
}

}  // namespace

Result<PrivateMount> private_mount(const Fd& opened, const std::string& name, RootfsMount kind, const Fd& empty,
                                   const Fd& above) {
  const auto facts = TRY(sys::fstat(opened, name));
  if (kind == RootfsMount::overlay && !S_ISDIR(facts.st_mode)) return copied_file(opened, name, facts);
  PrivateMount made;
  made.directory = S_ISDIR(facts.st_mode);
  made.mount = kind == RootfsMount::overlay
                   ? TRY(overlay_over(layers_of(opened, above) + ":" + by_descriptor(empty), opened, name))
                   : TRY(sys::read_only_mount(opened, name));
  made.identity = identity_of(TRY(sys::fstat(made.mount, name)));
  return made;
}

Result<PrivateMount> writable_mount(const Fd& directory, const std::string& name, const Fd& above, const Fd& into) {
  for (const char* part : {"upper", "work"}) TRY_VOID(sys::mkdirat(into.get(), part, 0777));
  NewMount overlay = TRY(NewMount::open("overlay"));
  const std::pair<const char*, std::string> options[] = {{"source", "none"},
                                                         {"lowerdir", layers_of(directory, above)},
                                                         {"upperdir", by_descriptor(into) + "/upper"},
                                                         {"workdir", by_descriptor(into) + "/work"}};
  for (const auto& [key, value] : options) TRY_VOID(overlay.set(key, value));
  PrivateMount made;
  made.mount = TRY(overlay.create(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  // What stands in the way is the mount alone, and not whose the directory is.
  if (::fchmodat(made.mount.get(), ".", 01777, 0) != 0) return sys_error("chmod", name, errno);
  made.identity = identity_of(TRY(sys::fstat(made.mount, name)));
  return made;
}

namespace {

// mknod's mode would be cut by the umask.
Result<void> make_device(const Fd& devices, const std::string& name, dev_t number) {
  if (::mknodat(devices.get(), name.c_str(), S_IFCHR, number) != 0) return sys_error("mknod", "/dev/" + name, errno);
  if (::fchmodat(devices.get(), name.c_str(), 0666, 0) != 0) return sys_error("chmod", "/dev/" + name, errno);
  return {};
}

// Nothing can be made in a read-only /dev later, and a delegate that finds these leaves them as they are. runc opens the console
// for writing, which a read-only mount allows of devices alone; it is the null device until the terminal is bound over it.
Result<void> add_terminal_places(const Fd& devices) {
  TRY_VOID(sys::mkdirat(devices.get(), "pts", 0755));
  if (::fchmodat(devices.get(), "pts", 0755, 0) != 0) return sys_error("chmod", "/dev/pts", errno);
  if (::symlinkat("pts/ptmx", devices.get(), "ptmx") != 0) return sys_error("symlink", "/dev/ptmx", errno);
  return make_device(devices, "console", makedev(1, 3));
}

}  // namespace

Result<Fd> device_mount(bool terminal, bool writable) {
  struct Node {
    const char* name;
    unsigned int major_number, minor_number;
  };
  constexpr Node kNodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                             {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
  constexpr const char* kLinks[][2] = {{"fd", "/proc/self/fd"},
                                       {"stdin", "/proc/self/fd/0"},
                                       {"stdout", "/proc/self/fd/1"},
                                       {"stderr", "/proc/self/fd/2"}};
  NewMount tmpfs = TRY(NewMount::open("tmpfs"));
  const std::pair<const char*, const char*> options[] = {{"size", "64k"}, {"nr_inodes", "16"}, {"mode", "0755"}};
  for (const auto& [key, value] : options) TRY_VOID(tmpfs.set(key, value));
  Fd mount = TRY(tmpfs.create(0));
  for (const auto& node : kNodes)
    TRY_VOID(make_device(mount, node.name, makedev(node.major_number, node.minor_number)));
  for (const auto& [name, target] : kLinks)
    if (::symlinkat(target, mount.get(), name) != 0) return sys_error("symlink", std::string("/dev/") + name, errno);
  if (terminal) TRY_VOID(add_terminal_places(mount));
  if (writable && ::fchmodat(mount.get(), ".", 01777, 0) != 0) return sys_error("chmod", "/dev", errno);
  const std::uint64_t access = writable ? 0 : MOUNT_ATTR_RDONLY;
  TRY_VOID(sys::set_mount_attributes(mount, access | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "/dev"));
  return mount;
}

}  // namespace benchsand
