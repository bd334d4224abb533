// Archives, each unpacked once and kept by its digest.
#pragma once

#include <string>
#include <vector>

#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kRootfsCache = "/var/lib/benchsand/rootfs";

struct CachedRootfs {
  std::string path;  // for messages: it is not looked up again
  Fd dir;
};
// Unpacks the tar archive unless that was done before. The path is for messages.
Result<CachedRootfs> cached_rootfs(const Fd& file, const std::string& path);

// Removes what killed unpackings left in the cache, and what is not a directory there; a line for each, also for what could
// not be removed.
Result<std::vector<std::string>> collect_rootfs_garbage();

}  // namespace benchsand
