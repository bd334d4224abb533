// A proc file system of a container's pid namespace, for a run that has no keeper: it lists the processes of the container and
// no other, and goes on being readable after they have ended.
#pragma once

#include <string>

#include "shim/host_process.h"
#include "shim/sys.h"

namespace benchsand {

Result<Fd> container_processes(const HostProcess& init);

// "gone", or what is left of it. Init itself may be there as a zombie: reaping it is its parent's affair.
Result<std::string> processes_gone(const Fd& processes);

}  // namespace benchsand
