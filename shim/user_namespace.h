// A run's user namespace, made before the delegate starts: it must belong to the run's own host id. The kernel charges what is
// counted per user (inotify instances, pending signals, ...) to a namespace's owner too; were that the host's root, a candidate
// could use up what the host's own services need, and two runs would share it.
#pragma once

#include "oci/policy.h"
#include "shim/sys.h"

namespace benchsand {

// Its descriptor, and a detached mount of it, for a delegate joins a namespace by path.
struct UserNamespaceMade {
  Fd descriptor, mount;
};
Result<UserNamespaceMade> make_user_namespace(const Policy& policy);

// A detached mount of a namespace, for a delegate joins one by path.
Result<Fd> mount_of_namespace(const Fd& descriptor, const std::string& name);

// CAP_SYS_RESOURCE, which root may lack in a container. Without it nobody outside may set the rlimits of a process in a user
// namespace that belongs to another id; runc sets them from outside, and fails.
Result<bool> may_set_limits_of_others();
// So then benchsand sets them while init is held at the door: from inside, where every capability comes with entering.
Result<void> set_limits_from_inside(const Policy& policy, const Fd& user_namespace, pid_t init);

}  // namespace benchsand
