// The verbs that stop a container, for a while or for good.
#include <cerrno>
#include <csignal>

#include "oci/runtime_error.h"
#include "oci/signal_name.h"
#include "shim/container_cgroup.h"
#include "shim/runtime_verbs.h"

namespace benchsand {

namespace {

// The number may have another owner since; the descriptor cannot, once the status was read again.
Result<Fd> open_init(const ContainerState& state) {
  auto init = sys::pidfd_open(state.pid);
  if (!init && init.error().error_number == ESRCH) return usage(container_not_running(state.id));
  if (!init) return std::unexpected(init.error());
  if (TRY(container_status(state)) == ContainerStatus::stopped) return usage(container_not_running(state.id));
  return std::move(*init);
}

Result<void> signal_if_there(pid_t pid, int signal) {
  const auto process = sys::pidfd_open(pid);
  const auto sent = process ? sys::pidfd_send_signal(*process, signal) : std::unexpected(process.error());
  if (!sent && sent.error().error_number != ESRCH) return std::unexpected(sent.error());
  return {};
}

Result<void> signal_all(const ContainerCgroup& cgroup, int signal) {
  if (signal == SIGKILL) return cgroup.kill();
  for (const pid_t pid : TRY(cgroup.processes())) TRY_VOID(signal_if_there(pid, signal));
  return {};
}

Result<int> freeze(const RuntimeCall& call, bool frozen) {
  const auto state = TRY(require_container(call.root, call.id));
  const auto status = TRY(container_status(state));
  if (status == ContainerStatus::stopped) return usage(container_not_running(call.id));
  if (frozen && status != ContainerStatus::running)
    return usage("pause container " + call.id + ": it is " + container_status_text(status) + ", not running");
  if (!frozen && status != ContainerStatus::paused)
    return usage("resume container " + call.id + ": it is " + container_status_text(status) + ", not paused");
  TRY_VOID(TRY(ContainerCgroup::open(state.run_id)).freeze(frozen));
  return 0;
}

}  // namespace

Result<int> verb_kill(const RuntimeContext&, const RuntimeCall& call) {
  const int signal = TRY(parse_signal(call.signal.empty() ? "TERM" : call.signal));
  const auto state = TRY(require_container(call.root, call.id));
  const bool ended = TRY(container_status(state)) == ContainerStatus::stopped;
  // containerd sends KILL to all of a container that has ended, to be sure.
  if (ended && call.all) return 0;
  if (ended) return usage(container_not_running(call.id));
  const Fd init = TRY(open_init(state));
  if (call.all) TRY_VOID(signal_all(TRY(ContainerCgroup::open(state.run_id)), signal));
  const auto sent = sys::pidfd_send_signal(init, signal);
  if (!sent && (sent.error().error_number != ESRCH || !call.all)) return std::unexpected(sent.error());
  return 0;
}

Result<int> verb_pause(const RuntimeContext&, const RuntimeCall& call) {
  return freeze(call, true);
}

Result<int> verb_resume(const RuntimeContext&, const RuntimeCall& call) {
  return freeze(call, false);
}

}  // namespace benchsand
