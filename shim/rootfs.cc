#include "shim/rootfs.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "oci/sha256.h"
#include "shim/output_fs.h"

namespace benchsand {

namespace {

struct ArchiveCloser {
  void operator()(archive* a) const { archive_free(a); }
};
using Archive = std::unique_ptr<archive, ArchiveCloser>;

Result<std::string> digest_of_file(const Fd& file, const std::string& path) {
  Sha256 digest;
  std::array<char, 65536> buffer;
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(file.get(), buffer.data(), buffer.size(), at);
    if (n < 0) return sys_error("read", path, errno);
    if (n == 0) return digest.hex();
    digest.update({buffer.data(), static_cast<std::size_t>(n)});
    at += n;
  }
}

std::unexpected<Error> archive_fault(const std::string& tried, archive* a) {
  return fault(tried + ": " + (archive_error_string(a) ? archive_error_string(a) : "unknown archive error"));
}

Result<void> copy_data(archive* from, archive* to, const std::string& name) {
  for (;;) {
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int read = archive_read_data_block(from, &block, &size, &offset);
    if (read == ARCHIVE_EOF) return {};
    if (read != ARCHIVE_OK) return archive_fault("unpack " + name, from);
    if (archive_write_data_block(to, block, size, offset) != ARCHIVE_OK) return archive_fault("unpack " + name, to);
  }
}

// Where an entry goes below `into`: never above it, and links only to places below it.
Result<void> place_entry(archive_entry* entry, const std::string& into) {
  const char* given = archive_entry_pathname(entry);
  if (!given) return fault("unpack a rootfs: an entry without a usable name");
  const auto inside = [&](std::string name) {
    while (name.starts_with("/") || name.starts_with("./")) name.erase(0, name[0] == '/' ? 1 : 2);
    return into + "/" + name;
  };
  archive_entry_set_pathname(entry, inside(given).c_str());
  if (const char* link = archive_entry_hardlink(entry)) archive_entry_set_hardlink(entry, inside(link).c_str());
  return {};
}

Result<void> unpack_entries(archive* from, archive* to, const std::string& into) {
  for (;;) {
    archive_entry* entry = nullptr;
    const int read = archive_read_next_header(from, &entry);
    if (read == ARCHIVE_EOF) return {};
    if (read != ARCHIVE_OK) return archive_fault("read a rootfs archive", from);
    const auto type = archive_entry_filetype(entry);
    if (type == AE_IFCHR || type == AE_IFBLK || type == AE_IFIFO || type == AE_IFSOCK)
      continue;  // /dev is the delegate's
    TRY_VOID(place_entry(entry, into));
    const std::string name = archive_entry_pathname(entry);
    if (archive_write_header(to, entry) != ARCHIVE_OK) return archive_fault("unpack " + name, to);
    TRY_VOID(copy_data(from, to, name));
    if (archive_write_finish_entry(to) != ARCHIVE_OK) return archive_fault("unpack " + name, to);
  }
}

Result<void> unpack(const Fd& file, const std::string& path, const std::string& into) {
  const Archive from(archive_read_new()), to(archive_write_disk_new());
  archive_read_support_format_tar(from.get());
  archive_read_support_filter_gzip(from.get());
  archive_read_support_filter_xz(from.get());
  archive_read_support_filter_zstd(from.get());
  archive_write_disk_set_options(to.get(), ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_OWNER |
                                               ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_SYMLINKS);
  if (archive_read_open_fd(from.get(), file.get(), 65536) != ARCHIVE_OK)
    return archive_fault("open " + path + " as a tar archive", from.get());
  TRY_VOID(unpack_entries(from.get(), to.get(), into));
  if (archive_write_close(to.get()) != ARCHIVE_OK) return archive_fault("unpack " + path, to.get());
  return {};
}

Result<std::string> cached_tar(const Fd& file, const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(kRootfsCache, failed);
  if (failed) return fault("create " + std::string(kRootfsCache) + ": " + failed.message());
  const std::string ready = std::string(kRootfsCache) + "/" + TRY(digest_of_file(file, path));
  if (TRY(sys::exists(sys::kHere, ready))) return ready;
  const std::string temporary = ready + "." + TRY(sys::random_hex(6));
  TRY_VOID(sys::mkdirat(sys::kHere, temporary, 0755));
  if (auto unpacked = unpack(file, path, temporary); !unpacked) {
    TRY_VOID(sys::remove_tree(sys::kHere, temporary));
    return std::unexpected(unpacked.error());
  }
  // Another run may have been first with the same bytes.
  if (!sys::renameat(sys::kHere, temporary, ready)) TRY_VOID(sys::remove_tree(sys::kHere, temporary));
  return ready;
}

Result<bool> has_place(const Rootfs& rootfs, const std::string& target) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, rootfs.dir.get(), target.c_str(), &how, sizeof how);
  if (fd >= 0) {
    const Fd found(static_cast<int>(fd));
    return true;
  }
  if (errno == ENOENT) return false;
  return sys_error("look for " + target + " in", rootfs.path, errno);
}

}  // namespace

Result<Rootfs> open_rootfs(const std::string& path) {
  const auto facts = sys::fstatat(sys::kHere, path, 0);
  if (!facts) return usage("open the rootfs: " + facts.error().message + "; it must be a directory or a tar archive");
  Rootfs rootfs;
  rootfs.path = path;
  if (!S_ISDIR(facts->st_mode))
    rootfs.path = TRY(cached_tar(TRY(sys::openat(sys::kHere, path, O_RDONLY | O_NONBLOCK)), path));
  std::error_code failed;
  rootfs.path = std::filesystem::canonical(rootfs.path, failed).string();
  if (failed) return fault("find the rootfs " + path + ": " + failed.message());
  if (rootfs.path == "/") return usage("use / as rootfs: it is this host; give a directory made for the sandbox");
  rootfs.dir = TRY(sys::open_directory(sys::kHere, rootfs.path));
  rootfs.identity = identity_of(TRY(sys::fstat(rootfs.dir, rootfs.path)));
  return rootfs;
}

Result<void> check_mount_points(const Rootfs& rootfs, Policy& policy) {
  std::vector<std::string> targets = {"/proc", "/dev", policy.output};
  for (auto& input : policy.inputs) {
    const auto facts = sys::fstatat(sys::kHere, input.source, 0);
    if (!facts) return usage("mount the input " + input.source + ": " + facts.error().message);
    if (!S_ISDIR(facts->st_mode) && !S_ISREG(facts->st_mode))
      return usage("mount the input " + input.source + ": neither a directory nor a regular file");
    std::error_code failed;
    input.source = std::filesystem::canonical(input.source, failed).string();
    if (failed) return fault("find the input " + input.source + ": " + failed.message());
    targets.push_back(input.target);
  }
  for (const auto& target : targets)
    if (!TRY(has_place(rootfs, target)))
      policy.notices.push_back("the rootfs has no " + target + ": an empty mount point is made there");
  return {};
}

}  // namespace benchsand
