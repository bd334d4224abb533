// The root file system a task names: a directory, or a tar archive that is unpacked once into a cache keyed by its digest.
#pragma once

#include <string>

#include "oci/policy.h"
#include "shim/sys.h"

namespace benchsand {

struct Rootfs {
  std::string path;      // directory
  std::string identity;  // "device:inode" of it, compared with /proc/PID/root at the door
  Fd dir;
};

inline constexpr const char* kRootfsCache = "/var/lib/benchsand/rootfs";

Result<Rootfs> open_rootfs(const std::string& path);

// Adds a notice for every mount point that the rootfs lacks (the delegate makes an empty one there); an input source that
// does not exist is an error.
Result<void> check_mount_points(const Rootfs& rootfs, Policy& policy);

}  // namespace benchsand
