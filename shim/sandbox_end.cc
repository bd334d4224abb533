#include <algorithm>

#include "oci/kernel_files.h"
#include "oci/record.h"
#include "oci/runtime_error.h"
#include "oci/sha256.h"
#include "shim/container_processes.h"
#include "shim/ending.h"
#include "shim/sandbox.h"

namespace benchsand {

// 5. The door.
Result<bool> Sandbox::candidate_may_start() {
  const std::uint64_t deadline = sys::monotonic_us() + kStartWithinUs;
  // Not earlier: crun's init makes an inet socket to bring lo up. With the filter, whose descriptor has just come, it cannot.
  egress_->attach(*remains_.cgroup);
  door_ = TRY(wait_at_door(notify_, ledger_, deadline));
  if (!door_) return delegate_failed("it failed before the candidate's first exec");
  network_watch_ = TRY(NetworkWatch::open(door_->pinned.network));
  const auto limited = limits_at_the_door_
                           ? set_limits_from_inside(policy_, user_namespace_->descriptor, door_->init.pid())
                           : Result<void>();
  evidence_.take("privileges.limits_set_by",
                 limited ? Result<std::string>(limits_at_the_door_ ? "benchsand" : "the delegate")
                         : Result<std::string>(std::unexpected(limited.error())),
                 "prlimit");
  TRY_VOID(observe_at_door(*door_, notify_, ledger_, policy_, made_, *remains_.cgroup, evidence_, deadline));
  output_->observe(evidence_, "");
  egress_->observe_attached(*remains_.cgroup, "", evidence_);
  TRY_VOID(open_task_watch());
  TRY_VOID(sys::timerfd_at(wall_timer_, sys::monotonic_us() + policy_.limits.wall_time_us));
  evidence_.take("wall-time.armed_us", sys::timerfd_left_us(wall_timer_), "timerfd_gettime, CLOCK_MONOTONIC");
  observed("at the door");
  const auto broken = broken_rules(rules_, evidence_, true);
  return std::all_of(broken.begin(), broken.end(),
                     [this](const Failure& failure) { return may_fail_at_the_door(policy_, failure.wall); });
}

Result<void> Sandbox::open_task_watch() {
  const RunCgroup& cgroup = *remains_.cgroup;
  if (remains_.delegate && remains_.delegate->has_keeper()) {
    tasks_ = TRY(TaskWatch::open(door_->init, *remains_.delegate, cgroup));
    return {};
  }
  remains_.processes = TRY(container_processes(door_->init));
  tasks_ = TRY(TaskWatch::open(door_->init, TRY(sys::open_directory(remains_.processes.get(), ".")), cgroup));
  return {};
}

void Sandbox::watch_network(Supervisor& supervisor) {
  supervisor.also_wait({&network_watch_->fd(), [this] { return network_watch_->serve(); }});
}

Result<void> Sandbox::let_execs_in(Supervisor& supervisor) {
  const Fd* limits_from = limits_at_the_door_ ? &user_namespace_->descriptor : nullptr;
  exec_doors_.emplace(
      TRY(ExecDoors::open(*listener_, facts_.id, policy_, made_.filter, ledger_, *tasks_, supervisor, limits_from)));
  supervisor.also_wait({&exec_doors_->fd(), [this] { return exec_doors_->ready(); }});
  return {};
}

Result<void> Sandbox::note_watched() {
  if (watched_.interrupted) return fault("finish the run: benchsand was told to stop by a signal");
  // A time that was somebody else's is no limit of the candidate's.
  if (watched_.was_frozen && watched_.killed_for == Cause::wall_time)
    return fault("finish the run: its wall time is over, and somebody had frozen it meanwhile (docker pause?)");
  // The delegate's own code ended the process: an operator's mistake must not become a candidate's zero.
  if (watched_.never_executed) {
    started_ = false;
    TRY_VOID(err_->drain_all());
    return fault("execute " + policy_.command.front() + ": " + err_->beginning() + program_cure(policy_.env));
  }
  return {};
}

namespace {

Result<int> status_of_zombie(const HostProcess& init) {
  const auto stat = TRY(parse_process_stat(TRY(init.read("stat")), init.name("stat")));
  if (stat.state != 'Z')
    return fault("read the exit status of init: it is in state " + std::string(1, stat.state) + ", not a zombie");
  return static_cast<int>(stat.wait_status);
}

}  // namespace

// 7. The end: init is a zombie that nobody reaps, so its exit status and the leaf cgroup are whole.
Result<void> Sandbox::observe_end() {
  RunCgroup& cgroup = *remains_.cgroup;
  observe_start_time(door_->init, ".end", evidence_);
  observe_user_namespace(door_->init, policy_, ".end", evidence_);
  const bool before = leaf_goes_with_init();
  if (before) observe_leaf_at_end();
  const auto let_go = TRY(let_init_die());
  TRY_VOID(kill_run(cgroup, *door_));
  TRY_VOID(cgroup.wait_empty(sys::monotonic_us() + kEmptyWithinUs));
  TRY_VOID(out_->drain_all());
  TRY_VOID(err_->drain_all());
  for (const auto* stream : {&*out_, &*err_})
    if (const auto why = stream->cut_short()) facts_.notices.push_back(*why);
  cgroup.observe_empty(evidence_);
  if (!before) observe_leaf_at_end();
  output_->observe(evidence_, ".end");
  output_->observe_spent(evidence_);
  tasks_->observe(evidence_);
  network_watch_->observe(evidence_);
  if (exec_doors_)
    exec_doors_->observe(evidence_);
  else if (!policy_.plain)
    observe_no_execs(evidence_);
  const auto texts = read_pinned(door_->pinned);
  observe_network_at_end(texts, evidence_);
  observe_mounts(texts.mountinfo, "pinned mount namespace: mountinfo", policy_, ".end", evidence_);
  if (policy_.seccomp.learn) evidence_.set("syscalls.answers", std::string("every call let run"), "benchsand learn");
  if (!policy_.plain) observe_documents();
  const int wait_status = let_go ? *let_go : TRY(status_of_zombie(door_->init));
  facts_.refusals = ledger_.entries();
  facts_.refusals_voided = ledger_.voided();
  spend(evidence_, watched_, policy_, out_->bytes(), err_->bytes());
  end_ = end_of(end_facts(evidence_, watched_, wait_status), policy_.limits);
  for (auto& notice : baseline_.notices(run_share(evidence_, policy_.limits)))
    facts_.notices.push_back(std::move(notice));
  return {};
}

void Sandbox::observe_leaf_at_end() {
  remains_.cgroup->observe_limits(evidence_, ".end");
  remains_.cgroup->observe_spent(evidence_);
  egress_->observe_attached(*remains_.cgroup, ".end", evidence_);
  egress_->observe_spent(evidence_);
}

// The bundle, and what was answered by its filter's notifications.
void Sandbox::observe_documents() {
  const auto config = sys::read_file(remains_.folder->dir().get(), "config.json");
  evidence_.take(
      "evidence.config_sha256.end",
      config ? Result<std::string>(sha256_hex(*config)) : Result<std::string>(std::unexpected(config.error())),
      "config.json read again");
  evidence_.set("syscalls.refused_calls", ledger_.total(), "seccomp notify, answered");
  evidence_.set("network.refused_sockets", ledger_.sockets(), "seccomp notify, answered");
}

// 9. Release, and prove that all is gone. Also the way out of every error.
void Sandbox::tear_down() {
  if (door_) door_->pinned = {};
  exec_doors_.reset();
  network_watch_.reset();
  if (output_) output_.reset();
  benchsand::tear_down(host_, facts_.delegate.name, remains_, evidence_);
  observed("at the end");
}

RunReport Sandbox::judged() {
  if (!remains_.fault.empty() && end_.fault.empty()) end_.fault = remains_.fault;
  RunReport report;
  report.verdict = judge(rules_, evidence_, end_, std::nullopt);
  report.end = end_;
  facts_.stdout_stream = out_->facts();
  facts_.stderr_stream = err_->facts();
  facts_.timeline = sampler_ ? sampler_->timeline().json() : nlohmann::json();
  report.record = make_record(policy_, host_.facts, facts_, rules_, evidence_, end_, report.verdict);
  return report;
}

}  // namespace benchsand
