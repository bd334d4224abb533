#include "shim/run.h"

#include <poll.h>

#include <array>
#include <csignal>

#include "shim/collect.h"
#include "shim/result_folder.h"
#include "shim/sandbox.h"

namespace benchsand {

namespace {

class Run : private Sandbox {
 public:
  Run(const Host& host, Policy policy, const RunHooks& hooks) : Sandbox(host, std::move(policy), hooks) {}

  Result<void> prepare(const std::optional<std::string>& results_directory);
  Result<void> story();
  void tear_down() { Sandbox::tear_down(); }
  Result<void> discard_results() { return benchsand::discard_results(remains_); }
  Result<RunReport> report();
  void set_fault(const std::string& why) { end_ = End{started_ ? Cause::killed : Cause::not_started, {}, {}, why}; }

 private:
  Result<void> start_delegate();
  Result<void> wait_for_listener();
  Result<void> watch();
  Result<void> delegate_ended();
  Result<void> collect();

  std::optional<ResultFolder> results_;
};

// 2. Prepare.
Result<void> Run::prepare(const std::optional<std::string>& results_directory) {
  stdin_ = TRY(standard_input(policy_.stdin_file));
  rootfs_ = TRY(open_task_rootfs(policy_));
  TRY_VOID(prepare_mount_points(*rootfs_, policy_));
  inputs_ = TRY(open_inputs(policy_));
  TRY_VOID(require_results_apart(results_directory.value_or(kRunBase), *rootfs_, inputs_));
  // From here on a signal is answered by taking everything away; before, there is nothing to take away.
  signals_ = TRY(sys::signalfd({SIGINT, SIGTERM, SIGHUP, SIGQUIT}));
  TRY_VOID(make_run_folder());
  results_ = TRY(ResultFolder::plan(results_directory, facts_.id));
  remains_.partial_results = results_->partial_path();
  TRY_VOID(remains_.folder->note_results(remains_.partial_results));
  TRY_VOID(results_->make());
  remains_.cgroup = TRY(RunCgroup::create(host_.cgroup, facts_.id, !policy_.cpuset.empty()));
  TRY_VOID(take_host_ids());
  TRY_VOID(make_mounts());
  out_ = TRY(OutputStream::create(TRY(results_->create_stream("stdout")), "stdout", policy_.limits.stdout_bytes));
  err_ = TRY(OutputStream::create(TRY(results_->create_stream("stderr")), "stderr", policy_.limits.stderr_bytes));
  return make_listener();
}

// Steps 3 to 8 of docs/architecture.md. What comes back is a fault; walls that do not stand are evidence.
Result<void> Run::story() {
  TRY_VOID(write_bundle(render_bundle(policy_, host_.facts, bundle_places())));
  TRY_VOID(start_delegate());
  baseline_.take(results_->dir(), results_->path(), *remains_.folder, *rootfs_, inputs_);
  made_.filter = TRY(expect_filter(policy_));
  egress_ = HostEgress::load(policy_);
  TRY_VOID(remains_.delegate->executed());
  TRY_VOID(wait_for_listener());
  if (!TRY(candidate_may_start())) return {};
  TRY_VOID(watch());
  TRY_VOID(observe_end());
  TRY_VOID(delegate_ended());
  return collect();
}

// 4. Run the delegate.
Result<void> Run::start_delegate() {
  DelegateStart start;
  start.arguments = {"--root",       delegate_state(facts_.delegate.name),
                     "--log",        remains_.folder->path("delegate.log"),
                     "--log-format", "json",
                     "run",          "--detach",
                     "--bundle",     remains_.folder->path(),
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
  return accept_listener();
}

// 6. Watch.
Result<void> Run::watch() {
  started_ = true;
  if (policy_.timeline_us) sampler_.emplace(*policy_.timeline_us, *remains_.cgroup, *output_);
  Supervisor supervisor(policy_, *door_, notify_, ledger_, *remains_.cgroup, signals_, wall_timer_,
                        host_.facts.processors, *out_, *err_, *tasks_, sampler_ ? &*sampler_ : nullptr);
  watch_network(supervisor);
  if (hooks_.learned != nullptr) supervisor.note_in(*hooks_.learned);
  if (hooks_.execs) {
    TRY_VOID(let_execs_in(supervisor));
    hooks_.execs(*exec_doors_);
  }
  std::optional<InitHold> hold;
  if (hooks_.hold) {
    hold.emplace(TRY(InitHold::seize(door_->init.pid())));
    supervisor.hold_with(*hold);
  }
  watched_ = TRY(supervisor.watch());
  if (hold) TRY(hold->release(sys::monotonic_us() + kEmptyWithinUs, TRY(remains_.cgroup->processes()) == 1));
  return note_watched();
}

Result<void> Run::delegate_ended() {
  const auto delegate = TRY(remains_.delegate->wait(sys::monotonic_us() + kEmptyWithinUs));
  if (!delegate) return fault("wait for " + facts_.delegate.name + ": it still runs after the container has ended");
  evidence_.set("evidence.delegate_exit", static_cast<std::uint64_t>(*delegate),
                facts_.delegate.name + " run --detach");
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

// 10. Judge, and write the record.
Result<RunReport> Run::report() {
  RunReport report = judged();
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
