#include "shim/door.h"

#include <poll.h>

#include "shim/filter_dump.h"

namespace benchsand {

namespace {

// The next notification, or nullopt when the last task with the filter is gone.
Result<std::optional<Notification>> next_notification(const SeccompNotify& notify, std::uint64_t deadline_us) {
  for (;;) {
    const short events = TRY(sys::poll_one(notify.fd(), POLLIN, deadline_us));
    if (events == 0) return fault("wait for the candidate's first exec: it did not come in time");
    if ((events & POLLIN) == 0) return std::nullopt;
    if (auto notification = TRY(notify.receive())) return notification;
  }
}

Result<std::optional<Notification>> next_exec(const SeccompNotify& notify, const Ledger& ledger,
                                              std::uint64_t deadline_us) {
  for (;;) {
    const auto notification = TRY(next_notification(notify, deadline_us));
    if (!notification || is_exec(*notification)) return notification;
    TRY(ledger.lets_run(notification->call) ? notify.let_run(*notification)
                                            : notify.refuse(*notification, ledger.errno_for(notification->call)));
  }
}

// A signal to the task voids the notification and the call is made anew: runc's Go runtime signals its own threads, and
// reading the filter stops the task. Whoever comes instead of the held task is not what was looked at.
Result<void> keep_held(Door& door, const SeccompNotify& notify, const Ledger& ledger, std::uint64_t deadline_us) {
  while (!TRY(notify.still_waits(door.held))) {
    const auto again = TRY(next_exec(notify, ledger, deadline_us));
    if (!again) return fault("hold the candidate's first exec: the process is gone");
    if (again->task != door.init.pid())
      return fault("hold the candidate's first exec: another task came to exec instead");
    door.held = *again;
  }
  return {};
}

Result<BpfProgram> proven_filter(const Door& door, const Policy& policy, const ExpectedFilter& expected,
                                 Evidence& evidence) {
  if (policy.filter_proof == FilterProof::compiled) {
    evidence.set("syscalls.proof", std::string("compiled from the policy"), "libseccomp");
    return expected.program;
  }
  auto dumped = TRY(dump_filter(door.init.pid()));
  evidence.set("syscalls.proof", std::string("dumped from the process"), "PTRACE_SECCOMP_GET_FILTER");
  return dumped;
}

void set_filter_facts(const FilterSummary& summary, const std::string& difference, Evidence& evidence) {
  const std::string source = "the attached filter, evaluated";
  evidence.set("syscalls.differences", difference.empty() ? "none" : difference, source);
  evidence.set("syscalls.i386", std::string(summary.i386_killed ? "killed" : "not killed"), source);
  evidence.set("syscalls.x32", std::string(summary.x32_killed ? "killed" : "not killed"), source);
  evidence.set("syscalls.unlisted_open", summary.unlisted_open, source);
  evidence.set("syscalls.refused", summary.refused, source);
  evidence.set("syscalls.of", summary.calls, source);
  evidence.set("syscalls.sha256", summary.sha256, source);
  std::string families;
  for (const auto& family : summary.open_families) families += (families.empty() ? "" : " ") + family;
  evidence.set("network.open_families", families.empty() ? "none" : families, source);
}

}  // namespace

void observe_filter(const Door& door, const Policy& policy, const ExpectedFilter& expected, Evidence& evidence) {
  const auto observe = [&]() -> Result<void> {
    const auto attached = TRY(proven_filter(door, policy, expected, evidence));
    // crun compiles with the same library and gets the same bytes; runc puts a stub in front.
    const bool same = attached == expected.program;
    const auto summary = same ? expected.summary : TRY(summarize_filter(attached));
    const auto difference = same ? std::string() : TRY(filter_difference(attached, expected.program, policy.seccomp));
    set_filter_facts(summary, difference, evidence);
    return {};
  };
  if (const auto observed = observe(); !observed)
    for (const char* key :
         {"syscalls.proof", "syscalls.differences", "syscalls.i386", "syscalls.x32", "syscalls.unlisted_open",
          "syscalls.refused", "syscalls.of", "syscalls.sha256", "network.open_families"})
      evidence.missing(key, observed.error().message, "the attached filter");
}

Result<ExpectedFilter> expect_filter(const Policy& policy) {
  ExpectedFilter expected;
  expected.program = TRY(compile_seccomp(policy.seccomp));
  expected.summary = TRY(summarize_filter(expected.program));
  return expected;
}

Result<std::optional<Door>> wait_at_door(const SeccompNotify& notify, const Ledger& ledger, std::uint64_t deadline_us) {
  const auto exec = TRY(next_exec(notify, ledger, deadline_us));
  if (!exec) return std::nullopt;
  Door door;
  door.held = *exec;
  door.init = TRY(HostProcess::open(exec->task));
  door.pidfd = TRY(sys::pidfd_open(exec->task));
  door.pinned = TRY(pin_namespaces(door.init));
  door.program = TRY(door.init.program());
  // Still held after the descriptors were taken: then they are of this very process, not of a successor of its number.
  TRY_VOID(keep_held(door, notify, ledger, deadline_us));
  return door;
}

Result<void> observe_at_door(Door& door, const SeccompNotify& notify, const Ledger& ledger, const Policy& policy,
                             const Made& made, RunCgroup& cgroup, Evidence& evidence, std::uint64_t deadline_us) {
  observe_filter(door, policy, made.filter, evidence);
  TRY_VOID(keep_held(door, notify, ledger, deadline_us));
  TRY_VOID(observe_waiting(door, policy, made, cgroup, evidence));
  return keep_held(door, notify, ledger, deadline_us);
}

Result<void> observe_waiting(const Door& door, const Policy& policy, const Made& made, RunCgroup& cgroup,
                             Evidence& evidence) {
  TRY_VOID(cgroup.open_leaf(TRY(door.init.read("cgroup")), door.init.name("cgroup"), evidence));
  cgroup.observe_limits(evidence, "");
  cgroup.observe_alone(evidence);
  observe_privileges(door.init, evidence);
  observe_descriptors(door.init, made.streams, evidence);
  observe_namespaces(door.init, evidence);
  observe_user_namespace(door.init, policy, "", evidence);
  observe_places(door.init, policy, made.rootfs_identity, made.output_identity, evidence);
  observe_mounts(door.init.read("mountinfo"), door.init.name("mountinfo"), policy, "", evidence);
  observe_inputs(door.init, made.inputs, evidence);
  observe_masks(door.init, policy, evidence);
  observe_network_at_door(door.init, evidence);
  observe_start_time(door.init, "", evidence);
  return {};
}

}  // namespace benchsand
