// The door: the candidate's first exec, held by seccomp notify. Everything is final here and nothing of the candidate has
// run. What the policy promises is read from the kernel now; on any difference the exec is never answered.
#pragma once

#include <optional>
#include <string>

#include "oci/bpf_eval.h"
#include "oci/evidence.h"
#include "oci/policy.h"
#include "shim/host_cgroup.h"
#include "shim/host_network.h"
#include "shim/host_process.h"
#include "shim/seccomp_notify.h"

namespace benchsand {

struct Door {
  HostProcess init;
  Fd pidfd;
  PinnedNamespaces pinned;
  std::string program;  // what init executes now: the delegate
  Notification held;    // the exec that waits for an answer
};

// The policy's filter as libseccomp compiles it, and what it does. Worked out while the delegate starts.
struct ExpectedFilter {
  BpfProgram program;
  FilterSummary summary;
};
Result<ExpectedFilter> expect_filter(const Policy& policy);

// What benchsand made for this run, to compare with what the process has.
struct Made {
  StandardStreams streams;
  std::string rootfs_identity;
  std::string output_identity;
  std::vector<std::pair<std::string, std::string>> inputs;  // target, identity
  ExpectedFilter filter;
};

// Waits for the first exec. Earlier notifications are the delegate's own: exit_group of a failed init is let through, what the
// policy refuses is refused, and nothing is counted.
// nullopt: the listener closed before any exec, so the delegate failed.
Result<std::optional<Door>> wait_at_door(const SeccompNotify& notify, const Ledger& ledger, std::uint64_t deadline_us);

// Reads everything into `evidence`. An error is a fault of the host; a wall that does not stand is not an error but evidence.
// All that is looked at while the candidate waits, at whatever: limits, privileges, namespaces, mounts, descriptors, network.
Result<void> observe_waiting(const Door& door, const Policy& policy, const Made& made, RunCgroup& cgroup,
                             Evidence& evidence);
void observe_filter(const Door& door, const Policy& policy, const ExpectedFilter& expected, Evidence& evidence);

Result<void> observe_at_door(Door& door, const SeccompNotify& notify, const Ledger& ledger, const Policy& policy,
                             const Made& made, RunCgroup& cgroup, Evidence& evidence, std::uint64_t deadline_us);

}  // namespace benchsand
