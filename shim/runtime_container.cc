// The verbs that make a container, start it and take it away. What lives longer than one call is the monitor's (monitor.cc).
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "oci/runtime_error.h"
#include "shim/container_name.h"
#include "shim/container_record.h"
#include "shim/control.h"
#include "shim/monitor.h"
#include "shim/runtime_verbs.h"
#include "shim/subprocess.h"
#include "shim/teardown.h"

namespace benchsand {

namespace {

// Longer than anything the monitor itself waits for: then its word is what is heard.
constexpr std::uint64_t kMonitorWithinUs = 180'000'000;

std::unexpected<Error> monitor_is_gone(const std::string& what, const std::string& id) {
  const std::string why = recorded_fault(id);
  return fault(what + " container " + id + ": its monitor has ended" + (why.empty() ? "" : " (" + why + ")") +
               ", so nothing observes it; delete the container");
}

// What an engine holds open must not reach a sandbox. Every descriptor of ours is close-on-exec from birth.
Result<void> close_inherited() {
  if (::syscall(SYS_close_range, 3U, ~0U, 0) != 0) return sys_error("close_range", "inherited descriptors", errno);
  return {};
}

// The container that stands for a Kubernetes pod must live as long as the pod. Who else calls his container one gains no more than
// that: the profile is as narrow as strict.
bool is_pod_sandbox(const nlohmann::json& config, const std::string& root) {
  const auto type = nlohmann::json::json_pointer("/annotations/io.kubernetes.cri.container-type");
  return root.ends_with("/k8s.io") && config.is_object() && config.contains(type) && config[type] == "sandbox";
}

Result<ProfileText> profile_of(const RuntimeContext& context, const RuntimeCall& call, const nlohmann::json& config) {
  const bool sandbox = is_pod_sandbox(config, call.root);
  return runtime_profile(sandbox ? RuntimeContext{context.called_as, "pod-sandbox"} : context);
}

// Read again, and still what the front end read.
Result<Documents> ordered_documents(const FrontOrder& front) {
  auto documents = TRY(load_documents({front.task_path, front.profile, front.settings}));
  if (documents.source.sha256 != front.task_sha256)
    return usage("make the container: the task " + front.task_path + " has changed since it was ordered");
  if (documents.profile_text.sha256 != front.profile_sha256)
    return usage("make the container: the profile " + front.profile + " has changed since the task was ordered");
  return documents;
}

// What a `benchsand run` has ordered: the task decides, and the engine brings the time to start.
Result<void> take_task(const Documents& documents, const HostFacts& host, ContainerOrder& order) {
  const std::vector<std::string> program = order.admission.task.command;
  order.policy = TRY(decide_policy(documents, host));
  if (!order.admission.refusals.empty()) return {};
  if (program != order.policy.command)
    order.admission.refusals.push_back({"evidence", "the engine would run another program than the task's",
                                        "ask why " + order.front->order.engine + " changes what it is told"});
  if (order.admission.terminal)
    order.admission.refusals.push_back({"stdio", "a terminal, which the task did not ask for",
                                        "ask why " + order.front->order.engine + " changes what it is told"});
  order.policy.image_digest = order.front->order.image;
  order.admission.output = {order.policy.output, ""};
  order.admission.edits.push_back({"/", "what the engine was asked for", "the task's policy", "evidence"});
  return {};
}

Result<ContainerOrder> take_order(const RuntimeContext& context, const RuntimeCall& call, const HostFacts& host) {
  const std::string text = TRY(sys::read_file(sys::kHere, call.bundle + "/config.json"));
  const auto config = nlohmann::json::parse(text, nullptr, false);
  ContainerOrder order;
  order.front = TRY(take_front_order(call.id));
  std::optional<Documents> ordered;
  if (order.front) ordered = TRY(ordered_documents(order.front->order));
  const ProfileText profile_text = ordered ? ordered->profile_text : TRY(profile_of(context, call, config));
  const Profile profile = ordered ? ordered->profile : TRY(parse_profile(profile_text.text, profile_text.name));
  const AdmitContext admitted_by{call.bundle, call.root, profile, call.id};
  order.admission = TRY(admit(text, admitted_by));
  order.name = container_name(config, call.id, ::getppid());
  order.state.oci_version = config.value("ociVersion", "");
  if (config.contains("annotations")) order.state.annotations = config["annotations"];
  order.admission.task.name = order.name;
  order.admission.task.profile = profile.name;
  if (ordered)
    TRY_VOID(take_task(*ordered, host, order));
  else if (auto policy = decide_admitted(order.admission, admitted_by, profile_text.sha256, host))
    order.policy = std::move(*policy);
  order.policy.profile_name = profile.name;  // of a refused container too
  order.policy.profile_sha256 = profile_text.sha256;
  order.state.root = call.root;
  order.state.id = call.id;
  order.state.bundle = call.bundle;
  order.state.profile = profile.name;
  order.state.rootfs = order.policy.rootfs;
  order.memory_headroom_bytes = profile.memory_headroom_bytes;
  order.console_socket = call.console_socket;
  return order;
}

struct Pair {
  ControlConnection ours, theirs;
};
Result<Pair> connected_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return sys_error("socketpair", "the monitor's report", errno);
  return Pair{ControlConnection(Fd(fds[0])), ControlConnection(Fd(fds[1]))};
}

// What went wrong, and the record that says so: otherwise an earlier run of the container would speak for it.
std::unexpected<Error> not_made(const Host& host, const ContainerOrder& order, Error error) {
  if (const auto kept = record_not_made(host, order, error.message); !kept)
    error.message += "; " + kept.error().message;
  return std::unexpected(std::move(error));
}

// All that is known of a container whose config.json or profile cannot be read.
ContainerOrder unread_order(const RuntimeContext& context, const RuntimeCall& call) {
  ContainerOrder order;
  order.name = call.id;
  order.state.root = call.root;
  order.state.id = call.id;
  order.state.bundle = call.bundle;
  order.admission.caller = "unknown";
  order.policy.profile_name = context.profile;
  return order;
}

// Init's number, once the container is created. The monitor goes on without us.
Result<pid_t> make_container(const RuntimeContext& context, const RuntimeCall& call) {
  TRY_VOID(close_inherited());
  if (TRY(find_container(call.root, call.id)))
    return usage("make the container: a container with the id " + call.id + " already exists");
  const Host host = TRY(require_host(TRY(choose_delegate())));
  auto order = take_order(context, call, host.facts);
  if (!order) return not_made(host, unread_order(context, call), std::move(order.error()));
  if (!order->admission.refusals.empty())
    return not_made(host, *order, usage(refusal_text(order->admission.refusals)).error());
  Pair report = TRY(connected_pair());
  const pid_t monitor = ::fork();
  if (monitor < 0) return sys_error("fork", "the monitor", errno);
  if (monitor == 0) {
    report.ours = ControlConnection();
    run_monitor(host, std::move(*order), std::move(report.theirs));
  }
  report.theirs = ControlConnection();
  const auto said = TRY(report.ours.receive(sys::monotonic_us() + kMonitorWithinUs));
  if (said.is_null())
    return not_made(host, *order, fault("make the container: its monitor ended without a word").error());
  if (said.contains("error")) return fault(said.at("error").get<std::string>());
  return said.at("pid").get<pid_t>();
}

// Digits alone, as one caller's parser wants it, and never half of them.
Result<void> write_pid_file(const std::string& path, pid_t pid) {
  if (path.empty()) return {};
  return sys::replace_file(path, std::to_string(pid), 0644);
}

Result<void> start_container(const RuntimeCall& call) {
  const auto state = TRY(require_container(call.root, call.id));
  const std::string folder = run_folder_of(state.run_id);
  const auto monitor = TRY(ControlConnection::to_monitor(folder));
  if (!monitor) return monitor_is_gone("start", call.id);
  const std::uint64_t deadline = sys::monotonic_us() + kMonitorWithinUs;
  if (!monitor->send({{"do", "start"}})) return monitor_is_gone("start", call.id);
  const auto go = TRY(monitor->receive(deadline));
  if (go.is_null()) return monitor_is_gone("start", call.id);
  if (go.contains("error")) return usage("start container " + call.id + ": " + go.at("error").get<std::string>());
  const auto delegate = TRY(find_delegate(state.delegate, kDelegateCache));
  DelegatePlaces places = delegate_places(state);
  places.log = folder + "/start.log";
  const int exit = TRY(run_delegate(delegate, delegate_arguments(call, places), Stdio::none));
  // A monitor that has ended meanwhile has said why before it did, and that is what is told.
  if (exit != 0) static_cast<void>(monitor->send({{"failed", last_words(places.log)}}));
  const auto judged = TRY(monitor->receive(deadline));
  if (judged.is_null()) return monitor_is_gone("start", call.id);
  if (judged.contains("error")) return fault(judged.at("error").get<std::string>());
  return {};
}

// Returns when the monitor has written the record and is gone.
Result<void> end_container(const ContainerState& state, bool force) {
  const auto monitor = TRY(ControlConnection::to_monitor(run_folder_of(state.run_id)));
  if (monitor) {
    const auto status = TRY(container_status(state));
    if (!force && status != ContainerStatus::stopped && status != ContainerStatus::created)
      return usage("delete container " + state.id + ": it is " + container_status_text(status) +
                   ", not stopped; stop it first, or use --force");
    if (monitor->send({{"do", "delete"}}))
      while (!TRY(monitor->receive(sys::monotonic_us() + kMonitorWithinUs)).is_null()) {
      }
  }
  return wait_for_monitor(state, sys::monotonic_us() + kMonitorWithinUs);
}

Result<void> delete_container(const RuntimeCall& call) {
  const auto state = TRY(find_container(call.root, call.id));
  if (!state && call.force) return {};
  if (!state) return usage(unknown_container(call.id));
  TRY_VOID(end_container(*state, call.force));
  TRY_VOID(clear_dead_run(state->run_id));
  TRY_VOID(keep_unfinished_record(unfinished_record_of(*state)));  // it had removed its run, and was killed then
  return remove_container(call.root, call.id);
}

}  // namespace

Result<int> verb_create(const RuntimeContext& context, const RuntimeCall& call) {
  const pid_t pid = TRY(make_container(context, call));
  if (const auto written = write_pid_file(call.pid_file, pid); !written) {
    static_cast<void>(delete_container(call));  // the first error is the one to be told
    return std::unexpected(written.error());
  }
  return 0;
}

Result<int> verb_start(const RuntimeContext&, const RuntimeCall& call) {
  TRY_VOID(start_container(call));
  return 0;
}

// As runc and crun do it for people; engines use create and start.
Result<int> verb_run(const RuntimeContext& context, const RuntimeCall& call) {
  if (!call.detach && ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return sys_error("prctl", "PR_SET_CHILD_SUBREAPER", errno);
  const pid_t pid = TRY(make_container(context, call));
  const auto started = [&]() -> Result<void> {
    TRY_VOID(write_pid_file(call.pid_file, pid));
    RuntimeCall start = call;
    start.verb = RuntimeVerb::start;
    return start_container(start);
  }();
  RuntimeCall remove = call;
  remove.verb = RuntimeVerb::remove;
  remove.force = true;
  if (!started) {
    static_cast<void>(delete_container(remove));  // the first error is the one to be told
    return std::unexpected(started.error());
  }
  if (call.detach) return 0;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return sys_error("waitpid", "the container's init", errno);
  if (!call.keep) TRY_VOID(delete_container(remove));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<int> verb_delete(const RuntimeContext&, const RuntimeCall& call) {
  TRY_VOID(delete_container(call));
  return 0;
}

}  // namespace benchsand
