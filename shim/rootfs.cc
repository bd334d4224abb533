#include "shim/rootfs.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>

#include "oci/sha256.h"

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

// Root's alone: an archive can hold set-user-ID programs, which no user of this host may find there.
Result<void> make_rootfs_cache() {
  for (const std::string& path : {std::string(kStateBase), std::string(kRootfsCache)}) {
    const auto made = sys::mkdirat(sys::kHere, path, 0700);
    if (!made && made.error().error_number != EEXIST) return made;
    if (::chmod(path.c_str(), 0700) != 0) return sys_error("chmod", path, errno);
  }
  return {};
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
    if (read != ARCHIVE_OK) return usage(archive_fault("read the rootfs archive", from).error().message);
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
  TRY_VOID(unpack_entries(from.get(), to.get(), into));
  if (archive_write_close(to.get()) != ARCHIVE_OK) return archive_fault("unpack " + path, to.get());
  return source.rest(path);
}

// Whatever an archive says of its own top, nobody but root may write there.
Result<void> claim_top(const std::string& directory) {
  if (::chown(directory.c_str(), 0, 0) != 0) return sys_error("chown", directory, errno);
  if (::chmod(directory.c_str(), 0755) != 0) return sys_error("chmod", directory, errno);
  return {};
}

Result<void> unpack_into(const std::string& temporary, const Fd& file, const std::string& path,
                         const std::string& digest) {
  const std::string unpacked = TRY(unpack(file, path, temporary));
  if (unpacked != digest) return fault("unpack " + path + ": the file changed meanwhile");
  return claim_top(temporary);
}

Result<std::string> cached_tar(const Fd& file, const std::string& path) {
  if (!S_ISREG(TRY(sys::fstat(file, path)).st_mode))
    return usage("use the rootfs " + path + ": neither a directory nor a regular file");
  TRY_VOID(make_rootfs_cache());
  const std::string digest = TRY(digest_of_file(file, path)), ready = std::string(kRootfsCache) + "/" + digest;
  if (TRY(sys::exists(sys::kHere, ready))) return ready;
  const std::string temporary = ready + "." + TRY(sys::random_hex(6));
  TRY_VOID(sys::mkdirat(sys::kHere, temporary, 0755));
  const Fd lock = TRY(sys::open_directory(sys::kHere, temporary));  // held while unpacking; gc removes what is not
  TRY_VOID(sys::flock(lock, temporary, true));
  if (auto done = unpack_into(temporary, file, path, digest); !done) {
    TRY_VOID(sys::remove_tree(sys::kHere, temporary));
    return std::unexpected(done.error());
  }
  // Another run may have been first with the same bytes.
  if (!sys::renameat(sys::kHere, temporary, ready)) TRY_VOID(sys::remove_tree(sys::kHere, temporary));
  return ready;
}

struct Place {
  std::string path;
  bool directory = true;
};

// nullopt: nothing there. No symbolic link is followed: where it leads inside is not where the mount would appear.
Result<std::optional<mode_t>> kind_at(const Rootfs& rootfs, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const Fd found(static_cast<int>(::syscall(SYS_openat2, rootfs.dir.get(), path.c_str(), &how, sizeof how)));
  if (found) return TRY(sys::fstat(found, path)).st_mode & S_IFMT;
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  if (errno == ELOOP) return usage("use the rootfs " + rootfs.path + ": " + path + " leads through a symbolic link");
  return sys_error("look for " + path + " in", rootfs.path, errno);
}

// In our own copy of an archive, where no symbolic link stands in the way (kind_at has looked).
Result<void> make_place(const Rootfs& rootfs, const Place& place) {
  for (std::size_t slash = place.path.find('/', 1);; slash = place.path.find('/', slash + 1)) {
    const bool last = slash == std::string::npos;
    const std::string part = place.path.substr(1, last ? std::string::npos : slash - 1);
    const auto made = last && !place.directory ? sys::create_file(rootfs.dir.get(), part, "", 0644)
                                               : sys::mkdirat(rootfs.dir.get(), part, 0755);
    if (!made && made.error().error_number != EEXIST) return made;
    if (last) return {};
  }
}

bool is_below(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

Result<std::vector<Place>> places_of(Policy& policy) {
  std::vector<Place> places = {{"/proc"}, {"/dev"}, {policy.output}};
  bool workdir_is_mounted = policy.workdir == policy.output || policy.workdir == "/";
  for (auto& input : policy.inputs) {
    std::error_code failed;
    input.source = std::filesystem::canonical(input.source, failed).string();
    if (failed) return usage("find the input " + input.source + ": " + failed.message());
    places.push_back({input.target, std::filesystem::is_directory(input.source)});
    if (is_below(policy.workdir, input.target)) {
      workdir_is_mounted = std::filesystem::is_directory(input.source + policy.workdir.substr(input.target.size()));
      if (!workdir_is_mounted)
        return usage("use the workdir " + policy.workdir + ": no such directory in the input " + input.source);
    }
  }
  if (!workdir_is_mounted && is_below(policy.workdir, policy.output))
    return usage("use the workdir " + policy.workdir + ": the output is empty when the run starts");
  if (!workdir_is_mounted) places.push_back({policy.workdir});
  return places;
}

std::unexpected<Error> missing_places(const Rootfs& rootfs, const std::vector<Place>& missing) {
  std::string names, directories, files;
  for (const auto& place : missing) {
    names += (names.empty() ? "" : ", ") + place.path;
    (place.directory ? directories : files) += " " + rootfs.path + place.path;
  }
  return usage("use the rootfs " + rootfs.path + ": it has no " + names +
               "; benchsand changes nothing in it, so make " + (missing.size() == 1 ? "it" : "them") + ":" +
               (directories.empty() ? "" : " mkdir -p" + directories) +
               (directories.empty() || files.empty() ? "" : " &&") + (files.empty() ? "" : " touch" + files));
}

// An operator's path that is wrong is a usage error, whatever the system call said.
void require_kind(const std::string& what, const std::string& path, bool directory, bool file, std::string& problems) {
  const auto facts = sys::fstatat(sys::kHere, path, 0);
  std::string problem;
  if (!facts)
    problem = facts.error().message;
  else if (!(directory && S_ISDIR(facts->st_mode)) && !(file && S_ISREG(facts->st_mode)))
    problem = path + " is not a " + (directory && file ? "directory or regular file" : "regular file");
  if (!problem.empty()) problems += (problems.empty() ? "" : "\n") + what + ": " + problem;
}

}  // namespace

Result<void> check_task_files(const Policy& policy) {
  std::string problems;
  require_kind("rootfs", policy.rootfs, true, true, problems);
  if (!policy.stdin_file.empty()) require_kind("stdin", policy.stdin_file, false, true, problems);
  for (const auto& input : policy.inputs) require_kind("input for " + input.target, input.source, true, true, problems);
  if (!problems.empty()) return usage(problems);
  return {};
}

Result<std::vector<std::string>> collect_rootfs_garbage() {
  std::vector<std::string> lines;
  if (!TRY(sys::exists(sys::kHere, kRootfsCache))) return lines;
  for (const auto& name : TRY(sys::list_directory(sys::kHere, kRootfsCache))) {
    if (name.find('.') == std::string::npos) continue;
    const std::string path = std::string(kRootfsCache) + "/" + name;
    const Fd lock = TRY(sys::open_directory(sys::kHere, path));
    if (!TRY(sys::try_flock(lock, path))) continue;
    TRY_VOID(sys::remove_tree(sys::kHere, path));
    lines.push_back("cleared the half unpacked " + path);
  }
  return lines;
}

Result<Rootfs> open_rootfs(const std::string& path) {
  const auto facts = TRY(sys::fstatat(sys::kHere, path, 0));
  Rootfs rootfs;
  rootfs.path = path;
  rootfs.unpacked = !S_ISDIR(facts.st_mode);
  if (rootfs.unpacked) rootfs.path = TRY(cached_tar(TRY(sys::openat(sys::kHere, path, O_RDONLY | O_NONBLOCK)), path));
  std::error_code failed;
  rootfs.path = std::filesystem::canonical(rootfs.path, failed).string();
  if (failed) return fault("find the rootfs " + path + ": " + failed.message());
  if (rootfs.path == "/") return usage("use / as rootfs: it is this host; give a directory made for the sandbox");
  rootfs.dir = TRY(sys::open_directory(sys::kHere, rootfs.path));
  const auto top = TRY(sys::fstat(rootfs.dir, rootfs.path));
  // Whoever can write there while the delegate works can lead it elsewhere.
  if (top.st_uid != 0 || (top.st_mode & 022) != 0)
    return usage("use the rootfs " + rootfs.path +
                 ": it must belong to root and be writable by nobody else: chown root " + rootfs.path +
                 " && chmod go-w " + rootfs.path);
  return rootfs;
}

namespace {

// The first entry that is neither file, directory nor symbolic link; empty when there is none. By the type in the directory
// itself, so that a large input costs a listing and no stat.
Result<std::string> special_file_in(const Fd& dir, const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(::fcntl(dir.get(), F_DUPFD_CLOEXEC, 0)), ::closedir);
  if (!stream) return sys_error("list", path, errno);
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    mode_t mode = DTTOIF(entry->d_type);
    if (entry->d_type == DT_UNKNOWN) mode = TRY(sys::fstatat(dir.get(), name, AT_SYMLINK_NOFOLLOW)).st_mode & S_IFMT;
    if (mode == S_IFDIR) {
      const std::string found = TRY(special_file_in(TRY(sys::open_directory(dir.get(), name)), path + "/" + name));
      if (!found.empty()) return found;
    } else if (mode != S_IFREG && mode != S_IFLNK) {
      return path + "/" + name;
    }
    errno = 0;
  }
  if (errno != 0) return sys_error("list", path, errno);
  return std::string();
}

Result<Input> open_input(const InputMount& asked) {
  Input input{asked.source, asked.target, TRY(sys::openat(sys::kHere, asked.source, O_PATH | O_NOFOLLOW))};
  const auto facts = TRY(sys::fstat(input.opened, asked.source));
  if (!S_ISDIR(facts.st_mode) && !S_ISREG(facts.st_mode))
    return usage("mount the input " + asked.source + ": neither a directory nor a regular file");
  if (S_ISDIR(facts.st_mode)) {
    const std::string special = TRY(special_file_in(TRY(sys::open_directory(input.opened.get(), ".")), asked.source));
    if (!special.empty())
      return usage("mount the input " + asked.source + ": " + special +
                   " is a socket, FIFO or device, through which a candidate could talk to this host; take it out");
  }
  return input;
}

}  // namespace

Result<std::vector<Input>> open_inputs(const Policy& policy) {
  std::vector<Input> inputs;
  for (const auto& asked : policy.inputs) inputs.push_back(TRY(open_input(asked)));
  return inputs;
}

Result<void> prepare_mount_points(const Rootfs& rootfs, Policy& policy) {
  std::vector<Place> missing;
  for (const auto& place : TRY(places_of(policy))) {
    const auto kind = TRY(kind_at(rootfs, place.path));
    if (!kind)
      missing.push_back(place);
    else if (S_ISDIR(*kind) != place.directory)
      return usage("use the rootfs " + rootfs.path + ": " + place.path + " is " +
                   (place.directory ? "no directory there" : "a directory there, and the input is a file"));
  }
  if (!missing.empty() && !rootfs.unpacked) return missing_places(rootfs, missing);
  for (const auto& place : missing) TRY_VOID(make_place(rootfs, place));
  return {};
}

}  // namespace benchsand
