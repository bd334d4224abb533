#include "shim/unpack_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "shim/run_folder.h"

namespace benchsand {

namespace {

Result<Fd> make_private_directory(const std::string& path) {
  const auto made = sys::mkdirat(sys::kHere, path, 0700);
  if (!made && made.error().error_number != EEXIST) return std::unexpected(made.error());
  Fd directory = TRY(sys::open_directory(sys::kHere, path));
  if (::fchmod(directory.get(), 0700) != 0) return sys_error("chmod", path, errno);
  return directory;
}

// Beside a cache of which nothing was changed since it was unpacked.
std::string mark_of(const std::string& path) {
  return path + ".2";
}

std::string aside(const std::string& path) {
  return path + ".older-";
}

Result<void> put_older_aside(const std::string& path) {
  const Fd alone = TRY(make_private_directory(kStateBase));
  TRY_VOID(sys::flock(alone, kStateBase, true));
  if (TRY(sys::exists(sys::kHere, mark_of(path)))) return {};
  if (TRY(sys::exists(sys::kHere, path)))
    TRY_VOID(sys::renameat(sys::kHere, path, aside(path) + TRY(sys::random_hex(6))));
  return sys::create_file(sys::kHere, mark_of(path), "", 0600);
}

}  // namespace

Result<UnpackCache> UnpackCache::make(const std::string& path, const std::string& what) {
  TRY_VOID(put_older_aside(path));
  return UnpackCache(path, what, TRY(make_private_directory(path)));
}

Result<std::optional<UnpackCache>> UnpackCache::find(const std::string& path, const std::string& what) {
  if (!TRY(sys::exists(sys::kHere, path)) || !TRY(sys::exists(sys::kHere, mark_of(path)))) return std::nullopt;
  return UnpackCache(path, what, TRY(sys::open_directory(sys::kHere, path)));
}

// A run of such a version may still have its rootfs there.
Result<std::vector<std::string>> UnpackCache::collect_older(const std::string& path) {
  std::vector<std::string> lines;
  if (!TRY(sys::exists(sys::kHere, kStateBase)) || !TRY(all_runs()).empty()) return lines;
  TRY_VOID(put_older_aside(path));
  for (const auto& name : TRY(sys::list_directory(sys::kHere, kStateBase))) {
    const std::string older = std::string(kStateBase) + "/" + name;
    if (!older.starts_with(aside(path))) continue;
    TRY_VOID(sys::remove_tree(sys::kHere, older));
    lines.push_back("removed " + older + ": an older benchsand had unpacked it");
  }
  return lines;
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
