#include "shim/collect.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "oci/sha256.h"

namespace benchsand {

namespace {

constexpr std::size_t kRefusedListed = 1000;

class Collector {
 public:
  explicit Collector(const CollectCaps& caps) : caps_(caps) {}

  Result<void> directory(const Fd& from, const Fd& into, const std::string& prefix, std::uint64_t depth) {
    for (const auto& name : TRY(sys::list_directory(from.get(), ".")))
      TRY_VOID(entry(from, into, name, prefix + name, depth));
    return {};
  }
  Collected take() { return std::move(collected_); }

 private:
  Result<void> entry(const Fd& from, const Fd& into, const std::string& name, const std::string& path,
                     std::uint64_t depth) {
    const auto facts = TRY(sys::fstatat(from.get(), name, AT_SYMLINK_NOFOLLOW));
    if (depth > caps_.depth) return refuse(path, "deeper than " + std::to_string(caps_.depth) + " levels");
    if (S_ISREG(facts.st_mode)) return file(from, into, name, path);
    if (!S_ISDIR(facts.st_mode)) return refuse(path, kind(facts.st_mode));
    if (++directories_ > caps_.files) return refuse(path, "more than " + std::to_string(caps_.files) + " directories");
    const Fd inside = TRY(sys::openat2_beneath(from.get(), name, O_RDONLY | O_DIRECTORY));
    TRY_VOID(sys::mkdirat(into.get(), name, 0755));
    const Fd target = TRY(sys::open_directory(into.get(), name));
    return directory(inside, target, path + "/", depth + 1);
  }

  Result<void> file(const Fd& from, const Fd& into, const std::string& name, const std::string& path) {
    const Fd source = TRY(sys::openat2_beneath(from.get(), name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW));
    const auto facts = TRY(sys::fstat(source, path));
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    if (!S_ISREG(facts.st_mode)) return refuse(path, kind(facts.st_mode));
    if (facts.st_nlink != 1)
      return refuse(path, "hard link: the file has " + std::to_string(facts.st_nlink) + " names");
    if ((facts.st_mode & (S_ISUID | S_ISGID)) != 0) return refuse(path, "set-user-ID or set-group-ID");
    if (collected_.files.size() >= caps_.files)
      return refuse(path, "more than " + std::to_string(caps_.files) + " files");
    // By the apparent size: a sparse file is small here and large wherever it is copied.
    if (size > caps_.bytes - bytes_) return refuse(path, "more than " + std::to_string(caps_.bytes) + " bytes in all");
    const Fd target = TRY(sys::openat(into.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
    collected_.files.push_back({path, size, TRY(copy(source, target, size, path)), facts.st_mode & 0777});
    bytes_ += size;
    return {};
  }

  // Exactly `size` bytes; the digest is of what was written, and the file is never opened again.
  static Result<std::string> copy(const Fd& source, const Fd& target, std::uint64_t size, const std::string& path) {
    Sha256 digest;
    std::array<char, 65536> buffer;
    for (std::uint64_t done = 0; done < size;) {
      const ssize_t n = ::read(source.get(), buffer.data(), std::min<std::uint64_t>(buffer.size(), size - done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return sys_error("read output", path, errno);
      if (n == 0) return fault("read output " + path + ": it became shorter, so somebody still writes");
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
      digest.update(bytes);
      TRY_VOID(sys::write_all(target, bytes, path));
      done += bytes.size();
    }
    return digest.hex();
  }

  static std::string kind(mode_t mode) {
    switch (mode & S_IFMT) {
      case S_IFLNK:
        return "symbolic link";
      case S_IFIFO:
        return "FIFO";
      case S_IFSOCK:
        return "socket";
      case S_IFCHR:
        return "character device";
      case S_IFBLK:
        return "block device";
      case S_IFDIR:
        return "directory";
      default:
        return "not a regular file";
    }
  }

  Result<void> refuse(const std::string& path, std::string reason) {
    // A record that lists tens of thousands of names helps nobody and costs the host gigabytes.
    if (collected_.refused.size() < kRefusedListed)
      collected_.refused.push_back({path, std::move(reason)});
    else
      ++collected_.refused_more;
    return {};
  }

  const CollectCaps& caps_;
  std::uint64_t bytes_ = 0, directories_ = 0;
  Collected collected_;
};

}  // namespace

Result<Collected> collect_outputs(const Fd& mount, const CollectCaps& caps, const Fd& into) {
  Collector collector(caps);
  const Fd root = TRY(sys::open_directory(mount.get(), "."));
  TRY_VOID(collector.directory(root, into, "", 1));
  return collector.take();
}

}  // namespace benchsand
