// /proc/PID/mountinfo, and its comparison with the mounts a policy grants.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "oci/result.h"

namespace benchsand {

// Where a single file stands in the file system that it is copied into for the run.
inline constexpr const char* kCopiedFile = "/file";

struct MountEntry {
  std::string root;               // path inside its file system, unescaped
  std::string target;             // mount point, unescaped (\040 \011 \012 \134)
  std::set<std::string> options;  // per mount: ro or rw, nosuid, nodev, noexec, relatime, ...
  std::string device;             // "major:minor"
  std::string type;               // proc, tmpfs, ext4, ...
  std::set<std::string> super_options;
};

Result<std::vector<MountEntry>> parse_mountinfo(const std::string& text, const std::string& source);

// Where else in the table the same file or directory can be found: behind a bind mount, or a second mount of its file system.
std::vector<std::string> other_names(const std::string& path, const std::vector<MountEntry>& table);

// One mount the policy grants.
struct GrantedMount {
  std::string target;
  bool writable = false;           // the output is, and a terminal
  std::set<std::string> required;  // options that must be there: nosuid, nodev, noexec
  std::set<std::string> types;     // allowed file system types; empty = any (rootfs and inputs come from the host)
  bool own = false;                // a file system of the run's own: an overlay, or a tmpfs with a file's copy
  bool optional = false;           // masks: a path that this kernel or rootfs does not have cannot be masked
  bool mask = false;               // hides something: /dev/null or an empty read-only tmpfs
};

// The differences in words, one each, sorted; empty when the table is exactly what was granted.
// A stacked second mount on a target, a missing one, an unknown one, rw where ro is due, a missing flag: each is a difference.
std::vector<std::string> mount_differences(const std::vector<MountEntry>& table,
                                           const std::vector<GrantedMount>& granted);

}  // namespace benchsand
