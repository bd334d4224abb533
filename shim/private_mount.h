// What a run sees of the host's directories and files, as file systems of its own: another run over the same source shares no
// inode with it (so no lock, lease or watch), and the mount table inside names no path and no device of the host.
#pragma once

#include <string>

#include "oci/policy.h"
#include "shim/sys.h"

namespace benchsand {

struct PrivateMount {
  Fd mount;               // detached, read-only, without set-user-ID and device nodes
  std::string inside;     // what of it is mounted: "" for its root, or "/NAME"
  std::string identity;   // "device:inode" of that, compared with what stands inside at the door
  bool directory = true;  // the root of the mount, which decides what it can be attached to
};

// `opened` may be O_PATH. The name is for messages alone: it is not looked up. `empty` is an empty directory of this mount
// namespace, for an overlay of lower layers only needs two. `above`: such a directory too, if anything is to be laid over it.
Result<PrivateMount> private_mount(const Fd& opened, const std::string& name, RootfsMount kind, const Fd& empty,
                                   const Fd& above = Fd());

// The same of a directory, but what is written into it lands in a folder below `into`: Relaxation::rootfs. Linux 6.1 does not take
// one that is not attached anywhere.
Result<PrivateMount> writable_mount(const Fd& directory, const std::string& name, const Fd& above, const Fd& into);

// The harmless six devices and the usual links, in a file system that nobody can add to. The delegate is given it as its own
// /dev too, so what it binds over a path that is masked is this run's null device and not the host's. With a terminal there are
// places in it for what the delegate mounts: `pts`, and `console`, over which it binds the terminal.
Result<Fd> device_mount(bool terminal = false, bool writable = false);

}  // namespace benchsand
