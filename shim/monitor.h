// The monitor: one process per container of an engine. It makes the sandbox, has the delegate create the container in it, stands at
// the door, watches, and writes the record. It outlives the call of the engine that made it, lives outside the container's cgroup,
// and when it dies the kernel kills the container (shim/init_hold).
#pragma once

#include <optional>
#include <string>

#include "oci/admit.h"
#include "oci/policy.h"
#include "shim/container_state.h"
#include "shim/control.h"
#include "shim/front_desk.h"
#include "shim/load.h"

namespace benchsand {

// What an engine asked for, admitted and decided.
struct ContainerOrder {
  ContainerState state;        // as it will be claimed; the monitor adds what it makes
  std::string console_socket;  // empty: no terminal
  std::string name;            // what people call it; the id where the engine has no names
  Admission admission;
  std::uint64_t memory_headroom_bytes = 0;  // of the profile, for updates
  Policy policy;                            // nothing decided where the admission has refusals
  std::optional<TakenOrder> front;          // it is the container of `benchsand run`
};

// The report a monitor gives the call that made it: {"pid": N} or {"error": TEXT}, once.
// Never returns to the caller's code: the process ends in here.
[[noreturn]] void run_monitor(const Host& host, ContainerOrder order, ControlConnection report);

}  // namespace benchsand
