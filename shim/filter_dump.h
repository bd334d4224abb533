// The seccomp filter as the kernel has it attached to a task (PTRACE_SECCOMP_GET_FILTER), read by stopping it for a moment.
#pragma once

#include "oci/seccomp.h"
#include "shim/sys.h"

namespace benchsand {

// Needs CONFIG_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, and that benchsand itself has no filter. A notification the task was
// waiting in is void afterwards: the call is made anew and a new one comes.
Result<BpfProgram> dump_filter(pid_t task);
// The same, of a task that the caller traces and has stopped.
Result<BpfProgram> filter_of_stopped(pid_t task);

}  // namespace benchsand
