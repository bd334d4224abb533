#include "shim/monitor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>

#include "oci/kernel_files.h"
#include "oci/mountinfo.h"
#include "oci/runtime_error.h"
#include "shim/container_record.h"
#include "shim/container_state.h"
#include "shim/monitor_class.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kReapWithinUs = 10'000'000;

Result<std::vector<MountEntry>> mounts_of_host() {
  const std::string source = "/proc/self/mountinfo";
  return parse_mountinfo(TRY(sys::read_file(sys::kHere, source)), source);
}

}  // namespace

const RunHooks& Monitor::nobodys_hooks() {
  static const RunHooks none;
  return none;
}

// The engine's descriptors become the container's, and the monitor keeps none of them as its own.
Result<void> Monitor::take_stdio() {
  const auto taken = [](int fd) -> Result<Fd> {
    Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) return sys_error("fcntl F_DUPFD", "descriptor " + std::to_string(fd), errno);
    return copy;
  };
  const Fd null = TRY(sys::openat(sys::kHere, "/dev/null", O_RDWR));
  // With a terminal they are not the container's, and an engine waits until nobody has them any more.
  const auto of_the_engine = [&](int fd) { return taken(policy_.terminal ? null.get() : fd); };
  stdin_ = TRY(of_the_engine(0));
  Fd out = TRY(of_the_engine(1)), err = TRY(of_the_engine(2));
  for (int fd = 0; fd < 3; ++fd)
    if (::dup2(null.get(), fd) < 0) return sys_error("dup2", "/dev/null", errno);
  out_ = TRY(OutputStream::pass_on(std::move(out), "stdout", policy_.limits.stdout_bytes));
  err_ = TRY(OutputStream::pass_on(std::move(err), "stderr", policy_.limits.stderr_bytes));
  return {};
}

Result<void> Monitor::claim() {
  ContainerState& state = order_.state;
  state.run_id = facts_.id;
  state.created = facts_.created;
  state.delegate = facts_.delegate.name;
  state.monitor = ::getpid();
  state.monitor_start_time = TRY(start_time_of(state.monitor));
  const auto claimed = claim_container(state);
  claimed_ = claimed.has_value();
  is_anothers_ = !claimed_;
  return claimed;
}

// Before anything is made in it.
Result<void> Monitor::check_rootfs() {
  const auto table = TRY(mounts_of_host());
  auto names = other_names(rootfs_->path, table);
  names.push_back(rootfs_->path);
  for (const auto& name : names)
    if (const auto refused = rootfs_refused(name)) return refuse("rootfs", refused->what, refused->cure.c_str());
  return {};
}

// Once more, now that the links on the way are known, and by every name: an engine's volume may be a bind mount of /etc.
Result<void> Monitor::check_sources() {
  const auto table = TRY(mounts_of_host());
  std::vector<Refused> refusals;
  const auto check = [&](auto refused_at, const std::string& source, const std::string& target) {
    auto refused = refused_at(source, target, order_.state.id);
    for (const auto& name : other_names(source, table))
      if (!refused && (refused = refused_at(name, target, order_.state.id)))
        refused->what = source + ": " + refused->what;
    if (refused) refusals.push_back(std::move(*refused));
  };
  for (const auto& input : policy_.inputs) check(source_refused, input.source, input.target);
  AdmittedOutput& output = order_.admission.output;
  if (!output.source.empty()) {
    std::error_code failed;
    const std::string found = std::filesystem::canonical(output.source, failed).string();
    if (failed) return refuse("output", "find " + output.source + ": " + failed.message(), "make the directory first");
    check(output_refused, found, output.target);
    output.source = found;  // what is opened is what was checked
  }
  if (refusals.empty()) return {};
  order_.admission.refusals = std::move(refusals);
  return usage(refusal_text(order_.admission.refusals));
}

// What only opening could show is refused like what the document showed.
std::unexpected<Error> Monitor::refuse(const char* wall, const std::string& what, const char* cure) {
  order_.admission.refusals = {{wall, what, cure}};
  return usage(refusal_text(order_.admission.refusals));
}

// What a task's author would be told of his files, the engine's user is told of his mounts.
Result<void> Monitor::open_sources() {
  rootfs_ = TRY(open_container_rootfs(policy_.rootfs));
  TRY_VOID(check_rootfs());
  const auto opened = [&]() -> Result<void> {
    for (auto& input : policy_.inputs)
      input.target = TRY(real_target(*rootfs_, input.target, {policy_.output, "/proc", "/dev", "/sys"}));
    TRY_VOID(prepare_mount_points(*rootfs_, policy_));
    inputs_ = TRY(open_inputs(policy_));
    return {};
  }();
  if (opened) return check_sources();
  return refuse("mounts", opened.error().message, "mount what the program needs, and nothing else");
}

// 2. Prepare.
Result<void> Monitor::prepare() {
  signals_ = TRY(sys::signalfd({SIGINT, SIGTERM, SIGHUP, SIGQUIT}));
  TRY_VOID(open_files());
  note_container(order_, facts_);
  TRY_VOID(claim());
  remains_.cgroup = TRY(RunCgroup::create(host_.cgroup, facts_.id, !policy_.cpuset.empty()));
  TRY_VOID(take_host_ids());
  TRY_VOID(make_mounts());
  TRY_VOID(seed_output());
  TRY_VOID(open_desk());
  return make_listener();
}

Result<void> Monitor::open_files() {
  TRY_VOID(take_stdio());
  TRY_VOID(open_sources());
  return make_run_folder();
}

Result<void> Monitor::open_desk() {
  desk_ = TRY(ControlDesk::open(remains_.folder->path()));
  return {};
}

Result<void> Monitor::seed_output() {
  const AdmittedOutput& place = order_.admission.output;
  const auto seeded = [&]() -> Result<void> {
    container_output_ = place.source.empty() ? TRY(ContainerOutput::in_layer(rootfs_->dir, place.target))
                                             : TRY(ContainerOutput::of_user(place.source));
    return container_output_->seed(*output_, policy_);
  }();
  if (!seeded) return refuse("output", seeded.error().message, "give a directory of your own, or mount it read-only");
  for (const auto& notice : container_output_->notices()) facts_.notices.push_back(notice);
  return {};
}

// 3. Bundle, 4. the delegate's create. After it the container's init waits for `start`.
Result<void> Monitor::create() {
  TRY_VOID(prepare());
  TRY_VOID(write_bundle(edited_config(order_.admission, policy_, host_.facts, bundle_places())));
  TRY_VOID(run_delegate_create());
  TRY_VOID(note_unfinished());
  TRY_VOID(report_.send({{"pid", order_.state.pid}}));
  created_ = true;
  return {};
}

// What is kept as the record should this process not live to write one.
Result<void> Monitor::note_unfinished() {
  const End end{
      Cause::not_started, {}, {}, "there is no record yet: the container has not ended, or its monitor was killed"};
  unfinished_ =
      make_record(policy_, host_.facts, facts_, rules_, evidence_, end, judge(rules_, evidence_, end, std::nullopt));
  const std::string text = unfinished_.dump();
  TRY_VOID(sys::create_file(remains_.folder->dir().get(), kUnfinishedRecord, text, 0600));
  return sys::create_file(sys::kHere, unfinished_record_of(order_.state), text, 0600);
}

Result<void> Monitor::run_delegate_create() {
  DelegateStart start;
  start.arguments = {"--root",
                     delegate_state(facts_.delegate.name),
                     "--log",
                     remains_.folder->path("delegate.log"),
                     "--log-format",
                     "json",
                     "create",
                     "--bundle",
                     remains_.folder->path(),
                     "--pid-file",
                     remains_.folder->path("pid")};
  if (!order_.console_socket.empty()) {
    start.arguments.push_back("--console-socket");
    start.arguments.push_back(order_.console_socket);
  }
  start.arguments.push_back(facts_.id);
  start.standard_input = std::move(stdin_);
  start.standard_output = out_->take_writer();
  start.standard_error = err_->take_writer();  // with a terminal, what the delegate itself says
  start.attachments = attachments();
  remains_.delegate = TRY(Delegate::start_without_keeper(host_.delegate, std::move(start)));
  baseline_.take(remains_.folder->dir(), remains_.folder->path(), *remains_.folder, *rootfs_, inputs_);
  made_.filter = TRY(expect_filter(policy_));
  egress_ = HostEgress::load(policy_);
  TRY_VOID(remains_.delegate->executed());
  return delegate_created();
}

// The call that made us is killed with its engine; then nobody wants the container any more.
Result<void> Monitor::delegate_created() {
  std::array<pollfd, 3> waits = {{{remains_.delegate->exit_pipe().get(), POLLIN, 0},
                                  {report_.fd().get(), POLLIN, 0},
                                  {signals_.get(), POLLIN, 0}}};
  const int n = ::poll(waits.data(), waits.size(), static_cast<int>(kStartWithinUs / 1000));
  if (n < 0) return sys_error("poll", "the delegate's create", errno);
  if (n == 0) return fault("create the container: " + facts_.delegate.name + " did not end in time");
  if (waits[0].revents == 0) return fault("create the container: the call of the engine was ended");
  const auto exit = TRY(remains_.delegate->wait(sys::monotonic_us() + kEmptyWithinUs));
  if (!exit || *exit != 0) return delegate_failed("it failed");
  evidence_.set("evidence.delegate_exit", std::uint64_t{0}, facts_.delegate.name + " create");
  const std::string name = remains_.folder->path("pid");
  const std::string text = TRY(sys::read_file(remains_.folder->dir().get(), "pid"));
  order_.state.pid = static_cast<pid_t>(TRY(parse_counter(text + (text.ends_with('\n') ? "" : "\n"), name)));
  init_ = TRY(sys::pidfd_open(order_.state.pid));
  order_.state.pid_start_time = TRY(start_time_of(order_.state.pid));
  return update_container(order_.state);
}

// 5. The door.
Result<void> Monitor::start() {
  TRY_VOID(wait_for_listener());
  if (!TRY(candidate_may_start())) return {};
  hold_.emplace(TRY(InitHold::seize(door_->held.task)));
  TRY_VOID(desk_->say(starter_, {{"started", true}}));
  starter_ = -1;
  return watch();
}

// 6. Watch, 7. the end, 8. collect.
Result<void> Monitor::watch() {
  started_ = true;
  if (policy_.timeline_us) sampler_.emplace(*policy_.timeline_us, *remains_.cgroup, *output_);
  Supervisor supervisor(policy_, *door_, notify_, ledger_, *remains_.cgroup, signals_, wall_timer_,
                        host_.facts.processors, *out_, *err_, *tasks_, sampler_ ? &*sampler_ : nullptr);
  watch_network(supervisor);
  TRY_VOID(let_execs_in(supervisor));
  supervisor.also_wait({&desk_->fd(), [this] { return hear_calls(); }});
  supervisor.hold_with(*hold_);
  watched_ = TRY(supervisor.watch());
  if (!told_to_stop_.empty()) return fault(told_to_stop_);
  TRY_VOID(note_watched());
  TRY_VOID(observe_end());
  return collect();
}

Result<std::optional<int>> Monitor::let_init_die() {
  if (!hold_ || !hold_->dying_of()) return std::nullopt;
  const bool alone = TRY(remains_.cgroup->processes()) == 1;
  return TRY(hold_->release(sys::monotonic_us() + kReapWithinUs, alone));
}

Result<void> Monitor::collect() {
  auto collected = TRY(container_output_->write_back(*output_, policy_.collect));
  facts_.outputs = std::move(collected.files);
  facts_.outputs_refused = std::move(collected.refused);
  facts_.outputs_refused_more = collected.refused_more;
  return {};
}

// From here on the store has a record of this run: nobody is shown the score of an earlier one, and where nothing can be kept, nothing
// is started. The engine has its container already, so `create` does not wait for the disk.
Result<void> Monitor::story() {
  kept_ = keep_record(unfinished_, order_.state.id);
  unfinished_ = nullptr;
  TRY_VOID(wait_for_start());
  return start();
}

// What the call that waits for the container is told: the fault, or every wall that did not stand.
std::string Monitor::why_not(const RunReport& report) const {
  if (!end_.fault.empty()) return end_.fault;
  std::string text;
  for (const auto& failure : report.verdict.failures)
    text += (text.empty() ? "" : "; ") + ("wall " + failure.wall + ": expected " + failure.expected + ", observed " +
                                          failure.observed + " (" + failure.source + ")");
  return "start the container: " + (text.empty() ? "it did not start" : text);
}

// 9. Release, 10. judge and record; only then the engine gets its container back.
void Monitor::finish(const Result<void>& told) {
  if (!told) end_ = End{started_ ? Cause::killed : Cause::not_started, {}, {}, told.error().message};
  tear_down();
  // The container of another monitor has, or will have, a record of its own.
  if (!created_ && !is_anothers_) static_cast<void>(record_not_made(host_, order_, end_.fault));  // no score either way
  if (!err_) return answer_callers(told.error().message);
  const RunReport report = judged();
  std::string why = why_not(report);
  if (const auto kept = keep(report); !kept) {
    why = kept.error().message;
    err_->say("benchsand: " + why + "\n");
  }
  if (created_) static_cast<void>(sys::unlinkat(sys::kHere, unfinished_record_of(order_.state), 0));
  if (!created_ && claimed_) static_cast<void>(remove_container(order_.state.root, order_.state.id));
  rootfs_.reset();
  inputs_.clear();
  if (const auto cut = err_->cut_short()) err_->say("benchsand: " + *cut + "\n");
  out_->close_sink();
  err_->close_sink();
  answer_callers(why);
  if (hold_)
    static_cast<void>(hold_->release(sys::monotonic_us() + kReapWithinUs, false));  // it dies with us in any case
}

Result<void> Monitor::keep(const RunReport& report) {
  if (!created_) return {};
  return keep_record(report.record, order_.state.id);
}

void Monitor::answer_callers(const std::string& why) {
  if (!created_) static_cast<void>(report_.send({{"error", delegate_words(why)}}));
  if (starter_ >= 0) static_cast<void>(desk_->say(starter_, {{"error", delegate_words(why)}}));
}

namespace {

// An exception is a fault like any other: what was made is taken away, and the record says why.
Result<void> told_by(Monitor& monitor) {
  try {
    TRY_VOID(monitor.create());
    return monitor.story();
  } catch (const std::exception& error) {
    return fault(std::string("an error in benchsand: ") + error.what());
  }
}

}  // namespace

void run_monitor(const Host& host, ContainerOrder order, ControlConnection report) {
  ::setsid();
  ::prctl(PR_SET_NAME, "benchsand");
  ::umask(022);
  if (::chdir("/") != 0) ::_exit(1);
  {
    const auto monitor = order.front ? std::make_unique<FrontMonitor>(host, std::move(order), std::move(report))
                                     : std::make_unique<Monitor>(host, std::move(order), std::move(report));
    monitor->finish(told_by(*monitor));
  }
  ::_exit(0);
}

}  // namespace benchsand
