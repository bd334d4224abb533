#include "shim/run.h"

#include <poll.h>
#include <sys/mount.h>

#include <array>
#include <csignal>

#include "oci/bundle.h"
#include "oci/kernel_files.h"
#include "oci/record.h"
#include "oci/sha256.h"
#include "shim/collect.h"
#include "shim/door.h"
#include "shim/ending.h"
#include "shim/host_baseline.h"
#include "shim/host_egress.h"
#include "shim/host_ids.h"
#include "shim/host_tasks.h"
#include "shim/new_mount.h"
#include "shim/output_fs.h"
#include "shim/private_mount.h"
#include "shim/result_folder.h"
#include "shim/rootfs.h"
#include "shim/run_folder.h"
#include "shim/supervisor.h"
#include "shim/teardown.h"
#include "shim/user_namespace.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kStartWithinUs = 60'000'000;  // delegate start to the door; slow machines exist
constexpr std::uint64_t kEmptyWithinUs = 10'000'000;
// The delegate sees the run's own devices there, so what it binds over a masked path is not the host's null device.
constexpr const char* kDevices = "/dev";

const std::string kRootPlace = std::string(kMountBase) + "/rootfs";
const std::string kOutputPlace = std::string(kMountBase) + "/output";
const std::string kUserPlace = std::string(kMountBase) + "/user-namespace";

std::string input_place(std::size_t index) {
  return std::string(kMountBase) + "/input-" + std::to_string(index);
}

class Run {
 public:
  Run(const Host& host, Policy policy, const RunHooks& hooks)
      : host_(host), policy_(std::move(policy)), hooks_(hooks), ledger_(policy_.seccomp, policy_.refusals) {}

  Result<void> prepare(const std::optional<std::string>& results_directory);
  Result<void> story();
  void tear_down();
  Result<void> discard_results() { return benchsand::discard_results(remains_); }
  Result<RunReport> report();
  void set_fault(const std::string& why) { end_ = End{started_ ? Cause::killed : Cause::not_started, {}, {}, why}; }

 private:
  Result<void> take_host_ids();
  Result<void> make_mounts();
  Result<void> write_bundle();
  Result<void> make_places();
  std::vector<Attachment> attachments() const;
  Result<void> start_delegate();
  Result<void> wait_for_listener();
  Result<bool> candidate_may_start();
  Result<void> watch();
  Result<void> observe_end();
  Result<void> collect();
  std::unexpected<Error> delegate_failed(const std::string& seen) const;
  void observed(const char* moment) {
    if (hooks_.observed) hooks_.observed(moment, evidence_);
  }

  const Host& host_;
  Policy policy_;
  const RunHooks& hooks_;
  std::vector<Rule> rules_;  // known once the host ids are
  std::optional<HostIdSlot> host_ids_;
  std::optional<UserNamespaceMade> user_namespace_;
  Ledger ledger_;
  Evidence evidence_;
  End end_;
  RunFacts facts_;
  RunRemains remains_;  // what teardown has to take away
  std::optional<ResultFolder> results_;
  std::optional<Rootfs> rootfs_;
  std::vector<Input> inputs_;
  std::optional<PrivateMount> root_mount_;
  std::vector<PrivateMount> input_mounts_;
  Fd devices_, places_;
  std::optional<OutputFs> output_;
  std::optional<SeccompListener> listener_;
  std::optional<OutputStream> out_, err_;
  std::optional<Sampler> sampler_;
  Made made_;
  SeccompNotify notify_;
  std::optional<HostEgress> egress_;
  std::optional<Door> door_;
  std::optional<TaskWatch> tasks_;
  HostBaseline baseline_{host_.cgroup};
  Watched watched_;
  bool limits_at_the_door_ = false, started_ = false;
  Fd signals_, stdin_, wall_timer_;
};

// 2. Prepare. Everything made here is known to remains_ from the moment it exists.
Result<void> Run::prepare(const std::optional<std::string>& results_directory) {
  stdin_ = TRY(standard_input(policy_.stdin_file));
  rootfs_ = TRY(open_rootfs(policy_.rootfs));
  TRY_VOID(prepare_mount_points(*rootfs_, policy_));
  inputs_ = TRY(open_inputs(policy_));
  TRY_VOID(require_results_apart(results_directory.value_or(kRunBase), *rootfs_, inputs_));
  // From here on a signal is answered by taking everything away; before, there is nothing to take away.
  signals_ = TRY(sys::signalfd({SIGINT, SIGTERM, SIGHUP, SIGQUIT}));
  remains_.folder = TRY(RunFolder::create());
  facts_.id = remains_.folder->id();
  facts_.created = sys::utc_now();
  facts_.delegate = host_.delegate.facts;
  results_ = TRY(ResultFolder::plan(results_directory, facts_.id));
  remains_.partial_results = results_->partial_path();
  TRY_VOID(remains_.folder->note_results(remains_.partial_results));
  TRY_VOID(results_->make());
  remains_.cgroup = TRY(RunCgroup::create(host_.cgroup, facts_.id, !policy_.cpuset.empty()));
  TRY_VOID(take_host_ids());
  TRY_VOID(make_mounts());
  out_ = TRY(OutputStream::create(TRY(results_->create_stream("stdout")), "stdout", policy_.limits.stdout_bytes));
  err_ = TRY(OutputStream::create(TRY(results_->create_stream("stderr")), "stderr", policy_.limits.stderr_bytes));
  wall_timer_ = TRY(sys::timerfd());
  listener_ = TRY(SeccompListener::create(remains_.folder->path("listener")));
  made_.streams = {TRY(identity_of_fd(stdin_)), TRY(out_->identity()), TRY(err_->identity())};
  return {};
}

Result<void> Run::take_host_ids() {
  if (policy_.user_namespace == UserNamespace::own) {
    host_ids_ = TRY(HostIdSlot::take());
    policy_.host_ids = host_ids_->ids();
    limits_at_the_door_ = facts_.delegate.name == "runc" && !TRY(may_set_limits_of_others());
    user_namespace_ = TRY(make_user_namespace(policy_));
  }
  rules_ = wall_rules(policy_, host_.facts);
  return {};
}

// Everything that the container is made of, from what was opened: no name of the host is looked up again.
Result<void> Run::make_mounts() {
  const Fd empty = TRY(remains_.folder->empty());
  root_mount_ = TRY(private_mount(rootfs_->dir, rootfs_->path, policy_.rootfs_mount, empty));
  made_.rootfs_identity = root_mount_->identity;
  for (const auto& input : inputs_) {
    input_mounts_.push_back(TRY(private_mount(input.opened, input.source, policy_.rootfs_mount, empty)));
    made_.inputs.emplace_back(input.target, input_mounts_.back().identity);
  }
  devices_ = TRY(device_mount());
  output_ = TRY(OutputFs::create(policy_));
  made_.output_identity = TRY(output_->identity());
  return make_places();
}

// Steps 3 to 8 of docs/architecture.md. What comes back is a fault; walls that do not stand are evidence.
Result<void> Run::story() {
  TRY_VOID(write_bundle());
  TRY_VOID(start_delegate());
  baseline_.take(*results_, *remains_.folder, *rootfs_, inputs_);
  made_.filter = TRY(expect_filter(policy_));
  egress_ = HostEgress::load(policy_);
  TRY_VOID(remains_.delegate->executed());
  TRY_VOID(wait_for_listener());
  if (!TRY(candidate_may_start())) return {};
  TRY_VOID(watch());
  TRY_VOID(observe_end());
  return collect();
}

Result<void> Run::write_bundle() {
  BundlePlaces places;
  places.rootfs = kRootPlace;
  places.output = kOutputPlace;
  places.cgroups_path = remains_.cgroup->leaf_path();
  places.listener = remains_.folder->path("listener");
  places.swap_file_exists = remains_.cgroup->has_swap_file();
  places.devices = kDevices;
  if (user_namespace_) places.user_namespace = kUserPlace;
  places.limits_at_the_door = limits_at_the_door_;
  for (std::size_t i = 0; i < inputs_.size(); ++i) places.inputs.push_back(input_place(i) + input_mounts_[i].inside);
  const std::string config = render_bundle(policy_, host_.facts, places);
  facts_.config_sha256 = sha256_hex(config);
  evidence_.set("evidence.config_sha256", facts_.config_sha256, "config.json as written");
  evidence_.set("evidence.taken_down", walls_taken_down(policy_), "the policy, as only a test can change it");
  evidence_.set("evidence.delegate_sha256", facts_.delegate.sha256, host_.delegate.path);
  return sys::create_file(remains_.folder->dir().get(), "config.json", config, 0600);
}

// A tmpfs over kMountBase with a place for each mount.
Result<void> Run::make_places() {
  NewMount tmpfs = TRY(NewMount::open("tmpfs"));
  TRY_VOID(tmpfs.set("mode", "0711"));
  TRY_VOID(tmpfs.set("size", "64k"));
  places_ = TRY(tmpfs.create(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  const auto name = [](const std::string& place) { return place.substr(std::string(kMountBase).size() + 1); };
  TRY_VOID(sys::mkdirat(places_.get(), name(kRootPlace), 0700));
  TRY_VOID(sys::mkdirat(places_.get(), name(kOutputPlace), 0700));
  if (user_namespace_) TRY_VOID(sys::create_file(places_.get(), name(kUserPlace), "", 0644));
  for (std::size_t i = 0; i < input_mounts_.size(); ++i)
    TRY_VOID(input_mounts_[i].directory ? sys::mkdirat(places_.get(), name(input_place(i)), 0700)
                                        : sys::create_file(places_.get(), name(input_place(i)), "", 0600));
  return {};
}

// Handed over by descriptor, and attached where only the delegate sees it; the places first.
std::vector<Attachment> Run::attachments() const {
  std::vector<Attachment> list = {{&devices_, kDevices},
                                  {&places_, kMountBase},
                                  {&root_mount_->mount, kRootPlace},
                                  {&output_->mount(), kOutputPlace}};
  for (std::size_t i = 0; i < input_mounts_.size(); ++i) list.push_back({&input_mounts_[i].mount, input_place(i)});
  if (user_namespace_) list.push_back({&user_namespace_->mount, kUserPlace});
  return list;
}

Result<void> Run::start_delegate() {
  DelegateStart start;
  start.arguments = {"--root",   delegate_state(facts_.delegate.name),
                     "--log",    remains_.folder->path("delegate.log"),
                     "run",      "--detach",
                     "--bundle", remains_.folder->path(),
                     facts_.id};
  start.standard_input = std::move(stdin_);
  start.standard_output = out_->take_writer();
  start.standard_error = err_->take_writer();
  start.attachments = attachments();
  remains_.delegate = TRY(Delegate::start(host_.delegate, std::move(start)));
  return {};
}

// The delegate connects, or ends, or somebody wants benchsand to stop.
Result<void> Run::wait_for_listener() {
  std::array<pollfd, 3> waits = {{{listener_->fd().get(), POLLIN, 0},
                                  {remains_.delegate->exit_pipe().get(), POLLIN, 0},
                                  {signals_.get(), POLLIN, 0}}};
  const int n = ::poll(waits.data(), waits.size(), static_cast<int>(kStartWithinUs / 1000));
  if (n < 0) return sys_error("poll", "the seccomp listener", errno);
  if (waits[2].revents != 0) return fault("start the container: benchsand was told to stop");
  if (n == 0)
    return fault("start the container: " + facts_.delegate.name + " did not hand over its seccomp fd in time");
  if (waits[0].revents == 0) return delegate_failed("it ended before the candidate could start");
  auto notify = listener_->accept(facts_.id, sys::monotonic_us() + kStartWithinUs);
  if (!notify) return delegate_failed(notify.error().message);
  notify_ = std::move(*notify);
  if (policy_.seccomp.learn) notify_.learn();
  return {};
}

// The delegate's own words say more than what was seen of its end.
std::unexpected<Error> Run::delegate_failed(const std::string& seen) const {
  const auto ended = remains_.delegate->wait(sys::monotonic_us() + kEmptyWithinUs);
  const auto log = sys::read_file(remains_.folder->dir().get(), "delegate.log");
  const bool words = ended && log && !log->empty();
  return fault("start the container with " + facts_.delegate.name + ": " +
               (words ? log->substr(0, log->find_last_not_of('\n') + 1) : seen));
}

// 5. The door.
Result<bool> Run::candidate_may_start() {
  const std::uint64_t deadline = sys::monotonic_us() + kStartWithinUs;
  // Not earlier: crun's init makes an inet socket to bring lo up. With the filter, whose descriptor has just come, it cannot.
  egress_->attach(*remains_.cgroup);
  door_ = TRY(wait_at_door(notify_, ledger_, deadline));
  if (!door_) return delegate_failed("it failed before the candidate's first exec");
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
  tasks_ = TRY(TaskWatch::open(door_->init, *remains_.delegate, *remains_.cgroup));
  TRY_VOID(sys::timerfd_at(wall_timer_, sys::monotonic_us() + policy_.limits.wall_time_us));
  evidence_.take("wall-time.armed_us", sys::timerfd_left_us(wall_timer_), "timerfd_gettime, CLOCK_MONOTONIC");
  observed("at the door");
  return broken_rules(rules_, evidence_, true).empty();
}

// 6. Watch.
Result<void> Run::watch() {
  started_ = true;
  if (policy_.timeline_us) sampler_.emplace(*policy_.timeline_us, *remains_.cgroup, *output_);
  Supervisor supervisor(policy_, *door_, notify_, ledger_, *remains_.cgroup, signals_, wall_timer_,
                        host_.facts.processors, *out_, *err_, *tasks_, sampler_ ? &*sampler_ : nullptr);
  if (hooks_.learned != nullptr) supervisor.note_in(*hooks_.learned);
  watched_ = TRY(supervisor.watch());
  if (watched_.interrupted) return fault("finish the run: benchsand was told to stop by a signal");
  // The delegate's own code ended the process: an operator's mistake must not become a candidate's zero.
  if (watched_.never_executed) {
    started_ = false;
    TRY_VOID(err_->drain_all());
    return fault("execute " + policy_.command.front() + ": " + err_->beginning());
  }
  return {};
}

// 7. The end: init is a zombie that nobody reaps, so its exit status and the leaf cgroup are whole.
Result<void> Run::observe_end() {
  RunCgroup& cgroup = *remains_.cgroup;
  TRY_VOID(kill_run(cgroup, *door_));
  TRY_VOID(cgroup.wait_empty(sys::monotonic_us() + kEmptyWithinUs));
  TRY_VOID(out_->drain_all());
  TRY_VOID(err_->drain_all());
  cgroup.observe_empty(evidence_);
  cgroup.observe_limits(evidence_, ".end");
  cgroup.observe_spent(evidence_);
  output_->observe(evidence_, ".end");
  output_->observe_spent(evidence_);
  tasks_->observe(evidence_);
  observe_start_time(door_->init, ".end", evidence_);
  observe_user_namespace(door_->init, policy_, ".end", evidence_);
  const auto texts = read_pinned(door_->pinned);
  observe_network_at_end(texts, evidence_);
  egress_->observe_attached(cgroup, ".end", evidence_);
  egress_->observe_spent(evidence_);
  observe_mounts(texts.mountinfo, "pinned mount namespace: mountinfo", policy_, ".end", evidence_);
  if (policy_.seccomp.learn) evidence_.set("syscalls.answers", std::string("every call let run"), "benchsand learn");
  const auto config = sys::read_file(remains_.folder->dir().get(), "config.json");
  evidence_.take(
      "evidence.config_sha256.end",
      config ? Result<std::string>(sha256_hex(*config)) : Result<std::string>(std::unexpected(config.error())),
      "config.json read again");
  const auto stat = TRY(parse_process_stat(TRY(door_->init.read("stat")), door_->init.name("stat")));
  if (stat.state != 'Z')
    return fault("read the exit status of init: it is in state " + std::string(1, stat.state) + ", not a zombie");
  const auto delegate = TRY(remains_.delegate->wait(sys::monotonic_us() + kEmptyWithinUs));
  if (!delegate) return fault("wait for " + facts_.delegate.name + ": it still runs after the container has ended");
  evidence_.set("evidence.delegate_exit", static_cast<std::uint64_t>(*delegate),
                facts_.delegate.name + " run --detach");
  evidence_.set("syscalls.refused_calls", ledger_.total(), "seccomp notify, answered");
  evidence_.set("network.refused_sockets", ledger_.sockets(), "seccomp notify, answered");
  facts_.refusals = ledger_.entries();
  facts_.refusals_voided = ledger_.voided();
  spend(evidence_, watched_, policy_.limits, out_->bytes(), err_->bytes());
  end_ = end_of(end_facts(evidence_, watched_, static_cast<int>(stat.wait_status)), policy_.limits);
  facts_.notices = baseline_.notices(run_share(evidence_, policy_.limits));
  return {};
}

// 8. Collect.
Result<void> Run::collect() {
  auto collected = TRY(collect_outputs(output_->mount(), policy_.collect, TRY(results_->output())));
  facts_.outputs = std::move(collected.files);
  facts_.outputs_refused = std::move(collected.refused);
  facts_.outputs_refused_more = collected.refused_more;
  return {};
}

// 9. Release, and prove that all is gone. Also the way out of every error.
void Run::tear_down() {
  if (door_) door_->pinned = {};
  if (output_) output_.reset();
  benchsand::tear_down(host_, facts_.delegate.name, remains_, evidence_);
  observed("at the end");
}

// 10. Judge, and write the record.
Result<RunReport> Run::report() {
  if (!remains_.fault.empty() && end_.fault.empty()) end_.fault = remains_.fault;
  RunReport report;
  report.verdict = judge(rules_, evidence_, end_, std::nullopt);
  report.end = end_;
  facts_.stdout_stream = out_->facts();
  facts_.stderr_stream = err_->facts();
  facts_.timeline = sampler_ ? sampler_->timeline().json() : nlohmann::json();
  report.record = make_record(policy_, host_.facts, facts_, rules_, evidence_, end_, report.verdict);
  TRY_VOID(results_->kept() ? results_->finish(report.record, facts_) : discard_results());
  TRY_VOID(remains_.folder->forget_results());
  report.results = results_->path();
  return report;
}

}  // namespace

Result<RunReport> run_task(const Host& host, Policy policy, const std::optional<std::string>& results_directory,
                           const RunHooks& hooks) {
  Run run(host, std::move(policy), hooks);
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
