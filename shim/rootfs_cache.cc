#include "shim/rootfs_cache.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "oci/sha256.h"
#include "shim/tree_writer.h"
#include "shim/unpack_cache.h"

namespace benchsand {

namespace {

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

Result<void> unpack(const Fd& top, const Fd& file, const std::string& path, const std::string& digest) {
  const TreeBounds bounds;
  TarReader tar = TRY(TarReader::open(file, "the rootfs " + path, bounds.bytes));
  TreeWriter writer(top, bounds);
  TRY_VOID(writer.apply(tar, Layering::none));
  if (TRY(tar.finish()).file != digest) return fault("unpack " + path + ": the file changed meanwhile");
  if (::fchmod(top.get(), 0755) != 0) return sys_error("chmod", path, errno);
  return {};
}

}  // namespace

Result<CachedRootfs> cached_rootfs(const Fd& file, const std::string& path) {
  if (!S_ISREG(TRY(sys::fstat(file, path)).st_mode))
    return usage("use the rootfs " + path + ": neither a directory nor a regular file");
  const auto cache = TRY(UnpackCache::make(kRootfsCache, "rootfs"));
  const std::string digest = TRY(digest_of_file(file, path));
  if (auto ready = TRY(cache.open(digest))) return CachedRootfs{cache.path_of(digest), std::move(*ready)};
  const auto unpacking = TRY(cache.begin(digest));
  if (auto done = unpack(unpacking.top, file, path, digest); !done) {
    TRY_VOID(cache.drop(unpacking));
    return std::unexpected(done.error());
  }
  return CachedRootfs{cache.path_of(digest), TRY(cache.keep(unpacking, digest))};
}

Result<std::vector<std::string>> collect_rootfs_garbage() {
  auto lines = TRY(UnpackCache::collect_older(kRootfsCache));
  const auto cache = TRY(UnpackCache::find(kRootfsCache, "rootfs"));
  if (!cache) return lines;
  for (auto& line : TRY(cache->collect_garbage())) lines.push_back(std::move(line));
  return lines;
}

}  // namespace benchsand
