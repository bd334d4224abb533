#include "shim/rootfs_cache.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>

#include "oci/sha256.h"

namespace benchsand {

namespace {

std::string cached_path(const std::string& name) {
  return std::string(kRootfsCache) + "/" + name;
}

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

// Root's alone: an archive can hold set-user-ID programs, which no user of this host may find there.
Result<Fd> make_private_directory(int dir, const std::string& path) {
  const auto made = sys::mkdirat(dir, path, 0700);
  if (!made && made.error().error_number != EEXIST) return std::unexpected(made.error());
  Fd directory = TRY(sys::open_directory(dir, path));
  if (::fchmod(directory.get(), 0700) != 0) return sys_error("chmod", path, errno);
  return directory;
}

Result<Fd> make_rootfs_cache() {
  static_cast<void>(TRY(make_private_directory(sys::kHere, kStateBase)));
  return make_private_directory(sys::kHere, kRootfsCache);
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

// "", ".", "/", "./." and so on.
bool names_top(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (!part.empty() && part != ".") return false;
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return true;
}

// The top is the directory that benchsand made, whatever the archive says of it. libarchive would put a symbolic link in its
// place, and what the link leads to on this host would be the rootfs.
Result<bool> is_top(archive_entry* entry, const std::string& path) {
  const char* given = archive_entry_pathname(entry);
  if (!given) return fault("unpack the rootfs " + path + ": an entry without a usable name");
  if (!names_top(given)) return false;
  if (archive_entry_filetype(entry) == AE_IFDIR && !archive_entry_hardlink(entry)) return true;
  return usage("unpack the rootfs " + path + ": its entry '" + given +
               "' is the top of the tree and not a directory; make the archive of a directory's content");
}

Result<void> unpack_entries(archive* from, archive* to, const std::string& path, const std::string& into) {
  for (;;) {
    archive_entry* entry = nullptr;
    const int read = archive_read_next_header(from, &entry);
    if (read == ARCHIVE_EOF) return {};
    if (read != ARCHIVE_OK) return usage(archive_fault("read the rootfs archive", from).error().message);
    if (TRY(is_top(entry, path))) continue;
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

// What libarchive reads, hashed on its way: the file may change between the look-up of its digest and the unpacking.
struct HashedFile {
  const Fd& file;
  Sha256 digest{};
  std::array<char, 65536> buffer{};

  static la_ssize_t read(archive* a, void* self, const void** block) {
    auto& source = *static_cast<HashedFile*>(self);
    const ssize_t n = ::read(source.file.get(), source.buffer.data(), source.buffer.size());
    if (n < 0) archive_set_error(a, errno, "read");
    if (n > 0) source.digest.update({source.buffer.data(), static_cast<std::size_t>(n)});
    *block = source.buffer.data();
    return n;
  }
  Result<std::string> rest(const std::string& path) {
    for (;;) {
      const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
      if (n < 0) return sys_error("read", path, errno);
      if (n == 0) return digest.hex();
      digest.update({buffer.data(), static_cast<std::size_t>(n)});
    }
  }
};

// Returns the digest of the bytes that were unpacked.
Result<std::string> unpack(const Fd& file, const std::string& path, const std::string& into) {
  HashedFile source{file};
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return sys_error("lseek", path, errno);
  const Archive from(archive_read_new()), to(archive_write_disk_new());
  archive_read_support_format_tar(from.get());
  archive_read_support_filter_gzip(from.get());
  archive_read_support_filter_xz(from.get());
  archive_read_support_filter_zstd(from.get());
  archive_write_disk_set_options(to.get(), ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_OWNER |
                                               ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_SYMLINKS);
  if (archive_read_open(from.get(), &source, nullptr, HashedFile::read, nullptr) != ARCHIVE_OK)
    return usage(archive_fault("open the rootfs " + path + " as a tar archive", from.get()).error().message);
  TRY_VOID(unpack_entries(from.get(), to.get(), path, into));
  if (archive_write_close(to.get()) != ARCHIVE_OK) return archive_fault("unpack " + path, to.get());
  return source.rest(path);
}

struct Unpacking {
  std::string name;  // in the cache
  Fd top;            // opened before the archive could say anything; locked, for gc removes what is not
};

Result<Unpacking> begin_unpacking(const Fd& cache, const std::string& digest) {
  Unpacking unpacking{digest + "." + TRY(sys::random_hex(6)), {}};
  TRY_VOID(sys::mkdirat(cache.get(), unpacking.name, 0700));
  unpacking.top = TRY(sys::open_directory(cache.get(), unpacking.name));
  TRY_VOID(sys::flock(unpacking.top, unpacking.name, true));
  return unpacking;
}

// Whatever an archive says of its own top, nobody but root may write there, and it is what was made.
Result<void> claim_top(const Fd& cache, const Unpacking& unpacking) {
  if (::fchown(unpacking.top.get(), 0, 0) != 0) return sys_error("chown", unpacking.name, errno);
  if (::fchmod(unpacking.top.get(), 0755) != 0) return sys_error("chmod", unpacking.name, errno);
  const auto opened = TRY(sys::fstat(unpacking.top, unpacking.name));
  const auto named = TRY(sys::fstatat(cache.get(), unpacking.name, AT_SYMLINK_NOFOLLOW));
  if (opened.st_dev == named.st_dev && opened.st_ino == named.st_ino) return {};
  return fault("unpack into " + cached_path(unpacking.name) + ": it is another directory now");
}

Result<void> unpack_into(const Fd& cache, const Unpacking& unpacking, const Fd& file, const std::string& path,
                         const std::string& digest) {
  const std::string unpacked = TRY(unpack(file, path, cached_path(unpacking.name)));
  if (unpacked != digest) return fault("unpack " + path + ": the file changed meanwhile");
  return claim_top(cache, unpacking);
}

// No symbolic link is followed: the rootfs would be a directory of this host.
Result<std::optional<Fd>> open_cached(const Fd& cache, const std::string& digest) {
  auto opened = sys::open_directory(cache.get(), digest);
  if (opened) return std::move(*opened);
  const int why = opened.error().error_number;
  if (why == ENOENT) return std::nullopt;
  if (why != ENOTDIR && why != ELOOP) return std::unexpected(opened.error());
  const std::string path = cached_path(digest);
  return usage("use the unpacked rootfs " + path +
               ": not a directory, and benchsand makes nothing else there; remove it: rm " + path);
}

// What is no directory there is not benchsand's, or comes from a version that could be led to make a symbolic link.
Result<std::string> clear_leftover(const Fd& cache, const std::string& name) {
  const auto opened = sys::open_directory(cache.get(), name);
  const int why = opened ? 0 : opened.error().error_number;
  if (why == ENOENT) return std::string();
  if (why == ENOTDIR || why == ELOOP) {
    TRY_VOID(sys::unlinkat(cache.get(), name, 0));
    return "removed " + cached_path(name) + ": it was not a directory";
  }
  if (!opened) return std::unexpected(opened.error());
  if (name.find('.') == std::string::npos || !TRY(sys::try_flock(*opened, name))) return std::string();
  TRY_VOID(sys::remove_tree(cache.get(), name));
  return "cleared the half unpacked " + cached_path(name);
}

}  // namespace

Result<CachedRootfs> cached_rootfs(const Fd& file, const std::string& path) {
  if (!S_ISREG(TRY(sys::fstat(file, path)).st_mode))
    return usage("use the rootfs " + path + ": neither a directory nor a regular file");
  const Fd cache = TRY(make_rootfs_cache());
  const std::string digest = TRY(digest_of_file(file, path));
  if (auto ready = TRY(open_cached(cache, digest))) return CachedRootfs{cached_path(digest), std::move(*ready)};
  const Unpacking unpacking = TRY(begin_unpacking(cache, digest));
  if (auto done = unpack_into(cache, unpacking, file, path, digest); !done) {
    TRY_VOID(sys::remove_tree(cache.get(), unpacking.name));
    return std::unexpected(done.error());
  }
  // Another run may have been first with the same bytes.
  if (!sys::renameat(cache.get(), unpacking.name, digest)) TRY_VOID(sys::remove_tree(cache.get(), unpacking.name));
  auto ready = TRY(open_cached(cache, digest));
  if (!ready) return fault("use the unpacked rootfs " + cached_path(digest) + ": it was removed meanwhile");
  return CachedRootfs{cached_path(digest), std::move(*ready)};
}

Result<std::vector<std::string>> collect_rootfs_garbage() {
  std::vector<std::string> lines;
  if (!TRY(sys::exists(sys::kHere, kRootfsCache))) return lines;
  const Fd cache = TRY(sys::open_directory(sys::kHere, kRootfsCache));
  for (const auto& name : TRY(sys::list_directory(cache.get(), "."))) {
    auto line = clear_leftover(cache, name);
    if (!line)
      lines.push_back("left " + cached_path(name) + " alone: " + line.error().message);
    else if (!line->empty())
      lines.push_back(std::move(*line));
  }
  return lines;
}

}  // namespace benchsand
