#include "shim/plain_run.h"

#include <poll.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "oci/kernel_files.h"
#include "oci/runtime_error.h"
#include "oci/seccomp.h"
#include "oci/without_runtime.h"
#include "shim/attached_mounts.h"
#include "shim/collect.h"
#include "shim/container_processes.h"
#include "shim/gate.h"
#include "shim/new_mount.h"
#include "shim/result_folder.h"
#include "shim/sandbox.h"

namespace benchsand {

namespace {

class PlainRun : private Sandbox {
 public:
  PlainRun(const Host& host, Policy policy, const RunHooks& hooks, PlainContainer& container)
      : Sandbox(host, std::move(policy), hooks), container_(container) {}

  Result<void> prepare(const std::string& results_directory);
  Result<void> story();
  void tear_down();
  Result<void> discard_results() { return benchsand::discard_results(remains_); }
  Result<RunReport> report();
  void set_fault(const std::string& why) { end_ = End{started_ ? Cause::killed : Cause::not_started, {}, {}, why}; }

 private:
  Result<void> make_file_systems();
  Result<BodyPlaces::Plain> attach();
  Result<void> start_container();
  Result<void> wait_for_gate();
  Result<Door> find_gate();
  Result<bool> may_open();
  void observe_gate();
  Result<void> watch();
  Result<void> note_not_executed();
  Result<std::optional<int>> let_init_die() override;
  bool leaf_goes_with_init() const override { return faulted_ && alone_; }
  Result<void> collect();

  PlainContainer& container_;
  bool created_ = false;
  bool faulted_ = false,
       alone_ = false;  // init stands before its death of a fault of its own, and nobody lives beside it
  std::optional<ResultFolder> results_;
  std::optional<Gate> gate_;
  std::optional<AttachedMounts> attached_;
  std::optional<InitHold> hold_;
  Fd no_sys_;
};

constexpr int kLookEveryMs = 50;

// What hides /sys: a direct run has none.
Result<Fd> empty_sys() {
  NewMount tmpfs = TRY(NewMount::open("tmpfs"));
  for (const auto& [key, value] : {std::pair{"mode", "0555"}, {"size", "4k"}, {"nr_inodes", "8"}})
    TRY_VOID(tmpfs.set(key, value));
  Fd mount = TRY(tmpfs.create(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
  for (const char* name : {"fs", "fs/cgroup"}) TRY_VOID(sys::mkdirat(mount.get(), name, 0555));
  TRY_VOID(sys::set_mount_attributes(mount, MOUNT_ATTR_RDONLY, "/sys"));
  return mount;
}

// A service of Podman's lowers its own limit to the kernel's largest process number, and cannot give more.
Result<std::uint64_t> user_processes() {
  const std::string source = "/proc/sys/kernel/pid_max";
  const std::uint64_t most = TRY(parse_counter(TRY(sys::read_file(sys::kHere, source)), source));
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0) return sys_error("getrlimit", "RLIMIT_NPROC", errno);
  return std::min<std::uint64_t>(limit.rlim_max, most);
}

// The engine's own image, or a directory that was imported into its store; only what is on this host can be looked at.
Result<Rootfs> rootfs_here(const Policy& policy) {
  if (!policy.rootfs.empty()) return open_rootfs(policy.rootfs);
  return Rootfs{kRunBase, TRY(sys::open_directory(sys::kHere, kRunBase))};
}

// 2. Prepare.
Result<void> PlainRun::prepare(const std::string& results_directory) {
  rootfs_ = TRY(rootfs_here(policy_));
  inputs_ = TRY(open_inputs(policy_));
  TRY_VOID(require_results_apart(results_directory, *rootfs_, inputs_));
  signals_ = TRY(sys::signalfd({SIGINT, SIGTERM, SIGHUP, SIGQUIT}));
  TRY_VOID(make_run_folder());
  results_ = TRY(ResultFolder::plan(results_directory, facts_.id));
  remains_.partial_results = results_->partial_path();
  TRY_VOID(remains_.folder->note_results(remains_.partial_results));
  TRY_VOID(results_->make());
  remains_.cgroup = TRY(RunCgroup::create(host_.cgroup, facts_.id, !policy_.cpuset.empty()));
  rules_ = wall_rules(policy_, host_.facts);
  wall_timer_ = TRY(sys::timerfd());
  return make_file_systems();
}

Result<void> PlainRun::make_file_systems() {
  const Fd empty = TRY(remains_.folder->empty());
  for (const auto& input : inputs_) {
    input_mounts_.push_back(TRY(private_mount(input.opened, input.source, policy_.rootfs_mount, empty)));
    made_.inputs.emplace_back(input.target, input_mounts_.back().identity);
  }
  devices_ = TRY(device_mount());
  no_sys_ = TRY(empty_sys());
  output_ = TRY(OutputFs::create(policy_));
  made_.output_identity = TRY(output_->identity());
  gate_ = TRY(Gate::create(policy_));
  made_.streams = gate_->streams();
  out_ = TRY(OutputStream::read_from(gate_->take_stdout(), TRY(results_->create_stream("stdout")), "stdout",
                                     policy_.limits.stdout_bytes));
  err_ = TRY(OutputStream::read_from(gate_->take_stderr(), TRY(results_->create_stream("stderr")), "stderr",
                                     policy_.limits.stderr_bytes));
  return {};
}

// 3. For the engine to find.
Result<BodyPlaces::Plain> PlainRun::attach() {
  attached_.emplace(remains_.folder->path());
  BodyPlaces::Plain places;
  places.cgroup_parent = remains_.cgroup->outer_path();
  places.command = {std::string(kGatePlace) + "/gate"};
  places.inputs.emplace_back(TRY(attached_->attach(gate_->mount(), "gate")), kGatePlace);
  places.inputs.emplace_back(TRY(attached_->attach(devices_, "dev")), "/dev");
  const std::string sys = TRY(attached_->attach(no_sys_, "sys"));
  places.inputs.emplace_back(sys, "/sys");
  places.inputs.emplace_back(sys + "/fs/cgroup", "/sys/fs/cgroup");
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto& input = input_mounts_[i];
    const std::string place = TRY(attached_->attach(input.mount, "input-" + std::to_string(i)));
    places.inputs.emplace_back(place + input.inside, inputs_[i].target);
  }
  places.output = TRY(attached_->attach(output_->mount(), "output"));
  places.user_processes = TRY(user_processes());
  places.seccomp_file = remains_.folder->path("seccomp.json");
  TRY_VOID(sys::create_file(remains_.folder->dir().get(), "seccomp.json", oci_seccomp_json(policy_.seccomp, "").dump(),
                            0600));
  return places;
}

// Steps 3 to 8 of docs/architecture.md. What comes back is a fault; walls that do not stand are evidence.
Result<void> PlainRun::story() {
  evidence_.set("evidence.taken_down", walls_taken_down(policy_), "the policy, as only a test can change it");
  for (const auto& key : unobservable_keys()) evidence_.missing(key, kNotWithoutRuntime, facts_.delegate.name);
  baseline_.take(results_->dir(), results_->path(), *remains_.folder, *rootfs_, inputs_);
  made_.filter = TRY(expect_filter(policy_));
  egress_ = HostEgress::load(policy_);
  TRY_VOID(start_container());
  if (!TRY(may_open())) return {};
  TRY_VOID(watch());
  TRY_VOID(observe_end());
  return collect();
}

// 4. The engine makes it, and its program is the gate.
Result<void> PlainRun::start_container() {
  const auto places = TRY(attach());
  created_ = true;  // whatever the engine answers, there may be one
  TRY_VOID(container_.create(facts_.id, policy_, places));
  remains_.cgroup->expect_leaf(container_.cgroup());
  TRY_VOID(container_.start(signals_));
  TRY_VOID(wait_for_gate());
  door_ = TRY(find_gate());
  observe_gate();
  TRY_VOID(gate_->hide());
  return attached_->detach();
}

Result<void> PlainRun::wait_for_gate() {
  std::array<pollfd, 2> waits = {{{gate_->report().get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  for (const std::uint64_t deadline = sys::monotonic_us() + kStartWithinUs; sys::monotonic_us() < deadline;) {
    const bool lives = TRY(remains_.cgroup->leaf_is_populated());
    const int n = ::poll(waits.data(), waits.size(), kLookEveryMs);
    if (n < 0 && errno != EINTR) return sys_error("poll", "the gate", errno);
    if (n > 0 && waits[1].revents != 0) return fault("start the container: benchsand was told to stop");
    if (n > 0) return gate_->is_ready();
    if (!lives)
      return fault("start the container: " + facts_.delegate.name +
                   " says that it runs, but nothing does in the cgroup " + remains_.cgroup->leaf_path());
  }
  return fault("start the container: " + facts_.delegate.name +
               " says that it runs, but its program never came to the gate");
}

// Looked for where the engine was told to put it, not where it says it is.
Result<Door> PlainRun::find_gate() {
  const pid_t pid = TRY(remains_.cgroup->lone_process());
  Door door;
  door.held.task = pid;
  door.init = TRY(HostProcess::open(pid));
  door.pidfd = TRY(sys::pidfd_open(pid));
  door.pinned = TRY(pin_namespaces(door.init));
  door.program = TRY(door.init.program());
  if (TRY(remains_.cgroup->lone_process()) != pid) return fault("find the gate in its cgroup: it was exchanged");
  return door;
}

void PlainRun::observe_gate() {
  const auto program = sys::fstatat(door_->init.dir().get(), "exe", 0);
  evidence_.set("evidence.gate_made", gate_->program(), "fstat of the program that benchsand made");
  evidence_.take(
      "evidence.gate",
      program ? Result<std::string>(identity_of(*program)) : Result<std::string>(std::unexpected(program.error())),
      door_->init.name("exe"));
}

// 5. The door.
Result<bool> PlainRun::may_open() {
  network_watch_ = TRY(NetworkWatch::open(door_->pinned.network));
  // Not earlier: a runtime makes sockets while it sets the container up.
  egress_->attach(*remains_.cgroup);
  static_cast<void>(remains_.cgroup->end_whole_on_oom());  // observed below
  evidence_.set("privileges.limits_set_by", std::string("the delegate"), facts_.delegate.name);
  observe_filter(*door_, policy_, made_.filter, evidence_);
  TRY_VOID(observe_waiting(*door_, policy_, made_, *remains_.cgroup, evidence_));
  output_->observe(evidence_, "");
  egress_->observe_attached(*remains_.cgroup, "", evidence_);
  TRY_VOID(open_task_watch());
  tasks_->expect_nobody_brought_in();
  TRY_VOID(sys::timerfd_at(wall_timer_, sys::monotonic_us() + policy_.limits.wall_time_us));
  evidence_.take("wall-time.armed_us", sys::timerfd_left_us(wall_timer_), "timerfd_gettime, CLOCK_MONOTONIC");
  const auto words = container_.words();
  evidence_.set("evidence.init", static_cast<std::uint64_t>(door_->init.pid()), "cgroup.procs");
  evidence_.set("evidence.cgroup_parent", remains_.cgroup->outer_path(), "mkdir");
  evidence_.take("evidence.engine_init", words ? Result<std::uint64_t>(words->init) : std::unexpected(words.error()),
                 facts_.delegate.name + " inspect: State.Pid");
  evidence_.take("evidence.engine_cgroup_parent",
                 words ? Result<std::string>(words->cgroup_parent) : std::unexpected(words.error()),
                 facts_.delegate.name + " inspect: HostConfig.CgroupParent");
  observed("at the door");
  if (!broken_rules(rules_, evidence_, true).empty()) return false;
  // From here on it dies with benchsand, and its engine cannot reap it.
  hold_.emplace(TRY(InitHold::seize(door_->init.pid())));
  return true;
}

// 6. Watch.
Result<void> PlainRun::watch() {
  started_ = true;
  if (policy_.timeline_us) sampler_.emplace(*policy_.timeline_us, *remains_.cgroup, *output_);
  Supervisor supervisor(policy_, *door_, notify_, ledger_, *remains_.cgroup, signals_, wall_timer_,
                        host_.facts.processors, *out_, *err_, *tasks_, sampler_ ? &*sampler_ : nullptr);
  supervisor.open_with([this] { return gate_->open_door(); });
  watch_network(supervisor);
  supervisor.hold_with(*hold_);
  watched_ = TRY(supervisor.watch());
  faulted_ = hold_->dying_of().has_value();
  alone_ = TRY(remains_.cgroup->processes()) == 1;
  TRY_VOID(note_not_executed());
  return note_watched();
}

// An operator's mistake must not become a candidate's zero.
Result<void> PlainRun::note_not_executed() {
  const auto why = TRY(gate_->why_not_executed());
  if (!why) return {};
  started_ = false;
  return fault("execute " + policy_.command.front() + ": " + std::strerror(*why) + program_cure(policy_.env));
}

Result<std::optional<int>> PlainRun::let_init_die() {
  if (!faulted_) return std::nullopt;
  const std::uint64_t deadline = sys::monotonic_us() + kEmptyWithinUs;
  if (alone_) return TRY(hold_->release(deadline, true));
  // Others could undo the fault, and would go on. Killed in its hold, init stays a zombie that nobody reaps.
  TRY_VOID(kill_run(*remains_.cgroup, *door_));
  if (TRY(sys::poll_one(door_->pidfd, POLLIN, deadline)) == 0)
    return fault("end init, which has faulted: it is still there");
  return hold_->dying_of();
}

// 8. Collect.
Result<void> PlainRun::collect() {
  auto collected = TRY(collect_outputs(output_->mount(), policy_.collect, TRY(results_->output())));
  facts_.outputs = std::move(collected.files);
  facts_.outputs_refused = std::move(collected.refused);
  facts_.outputs_refused_more = collected.refused_more;
  return {};
}

// 9. Release: init to its engine, then the container. The engine may be gone or hang; the rest is ours.
void PlainRun::tear_down() {
  const auto note = [&](const Result<void>& done) {
    if (!done && remains_.fault.empty()) remains_.fault = done.error().message;
  };
  if (remains_.cgroup) note(remains_.cgroup->kill());
  hold_.reset();
  gate_.reset();  // whoever waits at it ends
  if (created_) note(container_.remove());
  if (attached_) note(attached_->detach());
  attached_.reset();
  devices_.reset();
  no_sys_.reset();
  input_mounts_.clear();
  Sandbox::tear_down();
}

// 10. Judge, and write the record.
Result<RunReport> PlainRun::report() {
  RunReport report = judged();
  report.record = container_.compared(std::move(report.record));
  TRY_VOID(results_->finish(report.record, facts_));
  TRY_VOID(remains_.folder->forget_results());
  report.results = results_->path();
  return report;
}

Result<Host> host_for(const DelegateFacts& engine) {
  if (::geteuid() != 0)
    return fault("start a run: benchsand must be root to make cgroups and to look at them; use sudo");
  auto cgroup = TRY(CgroupHost::find());
  TRY_VOID(make_base_folders());
  const auto facts = host_facts(cgroup.layout(), engine);
  DelegateBinary delegate;
  delegate.facts = engine;
  return Host{std::move(cgroup), std::move(delegate), facts};
}

}  // namespace

Result<RunReport> run_plain(const DelegateFacts& engine, Policy policy, const std::string& results_directory,
                            PlainContainer& container) {
  const auto host = TRY(host_for(engine));
  const RunHooks hooks;
  PlainRun run(host, std::move(policy), hooks, container);
  if (auto prepared = run.prepare(results_directory); !prepared) {
    run.tear_down();
    static_cast<void>(run.discard_results());  // the note is kept then, for gc
    return std::unexpected(prepared.error());
  }
  if (const auto told = run.story(); !told) run.set_fault(told.error().message);
  run.tear_down();
  auto report = run.report();
  if (!report) static_cast<void>(run.discard_results());
  return report;
}

}  // namespace benchsand
