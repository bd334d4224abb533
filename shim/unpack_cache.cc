#include "shim/unpack_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace benchsand {

namespace {

Result<Fd> make_private_directory(const std::string& path) {
  const auto made = sys::mkdirat(sys::kHere, path, 0700);
  if (!made && made.error().error_number != EEXIST) return std::unexpected(made.error());
  Fd directory = TRY(sys::open_directory(sys::kHere, path));
  if (::fchmod(directory.get(), 0700) != 0) return sys_error("chmod", path, errno);
  return directory;
}

}  // namespace

Result<UnpackCache> UnpackCache::make(const std::string& path, const std::string& what) {
  static_cast<void>(TRY(make_private_directory(kStateBase)));
  return UnpackCache(path, what, TRY(make_private_directory(path)));
}

Result<std::optional<UnpackCache>> UnpackCache::find(const std::string& path, const std::string& what) {
  if (!TRY(sys::exists(sys::kHere, path))) return std::nullopt;
  return UnpackCache(path, what, TRY(sys::open_directory(sys::kHere, path)));
}

Result<std::optional<Fd>> UnpackCache::open(const std::string& digest) const {
  auto opened = sys::open_directory(dir_.get(), digest);
  if (opened) return std::move(*opened);
  const int why = opened.error().error_number;
  if (why == ENOENT) return std::nullopt;
  if (why != ENOTDIR && why != ELOOP) return std::unexpected(opened.error());
  const std::string path = path_of(digest);
  return usage("use the unpacked " + what_ + " " + path +
               ": not a directory, and benchsand makes nothing else there; remove it: rm " + path);
}

Result<UnpackCache::Unpacking> UnpackCache::begin(const std::string& digest) const {
  Unpacking unpacking{digest + "." + TRY(sys::random_hex(6)), {}};
  TRY_VOID(sys::mkdirat(dir_.get(), unpacking.name, 0700));
  unpacking.top = TRY(sys::open_directory(dir_.get(), unpacking.name));
  TRY_VOID(sys::flock(unpacking.top, unpacking.name, true));
  return unpacking;
}

Result<Fd> UnpackCache::keep(const Unpacking& unpacking, const std::string& digest) const {
  const auto opened = TRY(sys::fstat(unpacking.top, unpacking.name));
  const auto named = TRY(sys::fstatat(dir_.get(), unpacking.name, AT_SYMLINK_NOFOLLOW));
  if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino)
    return fault("unpack into " + path_of(unpacking.name) + ": it is another directory now");
  if (!sys::renameat(dir_.get(), unpacking.name, digest)) TRY_VOID(drop(unpacking));
  auto ready = TRY(open(digest));
  if (!ready) return fault("use the unpacked " + what_ + " " + path_of(digest) + ": it was removed meanwhile");
  return std::move(*ready);
}

Result<void> UnpackCache::drop(const Unpacking& unpacking) const {
  return sys::remove_tree(dir_.get(), unpacking.name);
}

// What is no directory there is not benchsand's, or comes from a version that could be led to make a symbolic link.
Result<std::string> UnpackCache::clear_leftover(const std::string& name) const {
  const auto opened = sys::open_directory(dir_.get(), name);
  const int why = opened ? 0 : opened.error().error_number;
  if (why == ENOENT) return std::string();
  if (why == ENOTDIR || why == ELOOP) {
    TRY_VOID(sys::unlinkat(dir_.get(), name, 0));
    return "removed " + path_of(name) + ": it was not a directory";
  }
  if (!opened) return std::unexpected(opened.error());
  if (name.find('.') == std::string::npos || !TRY(sys::try_flock(*opened, name))) return std::string();
  TRY_VOID(sys::remove_tree(dir_.get(), name));
  return "cleared the half unpacked " + path_of(name);
}

Result<std::vector<std::string>> UnpackCache::collect_garbage() const {
  std::vector<std::string> lines;
  for (const auto& name : TRY(sys::list_directory(dir_.get(), "."))) {
    auto line = clear_leftover(name);
    if (!line)
      lines.push_back("left " + path_of(name) + " alone: " + line.error().message);
    else if (!line->empty())
      lines.push_back(std::move(*line));
  }
  return lines;
}

}  // namespace benchsand
