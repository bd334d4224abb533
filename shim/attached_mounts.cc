#include "shim/attached_mounts.h"

#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "oci/mountinfo.h"

namespace benchsand {

AttachedMounts::~AttachedMounts() {
  static_cast<void>(detach());  // what is left, the teardown finds
}

Result<std::string> AttachedMounts::attach(const Fd& mount, const std::string& name) {
  const std::string place = folder_ + "/" + name;
  TRY_VOID(sys::mkdirat(sys::kHere, place, 0700));
  if (::syscall(SYS_move_mount, mount.get(), "", AT_FDCWD, place.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return sys_error("move_mount", place, errno);
  return place;
}

Result<void> AttachedMounts::detach() {
  return detach_mounts_below(folder_);
}

Result<void> detach_mounts_below(const std::string& folder) {
  const std::string source = "/proc/self/mountinfo";
  const auto table = TRY(parse_mountinfo(TRY(sys::read_file(sys::kHere, source)), source));
  for (auto mount = table.rbegin(); mount != table.rend(); ++mount)
    if (mount->target == folder || mount->target.starts_with(folder + "/"))
      if (::umount2(mount->target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
        return sys_error("umount", mount->target, errno);
  return {};
}

}  // namespace benchsand
