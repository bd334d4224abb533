#include "shim/exec_doors.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

#include "oci/kernel_files.h"
#include "oci/walls.h"
#include "shim/filter_dump.h"
#include "shim/ptrace.h"
#include "shim/user_namespace.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kThroughTheDoorWithinUs = 60'000'000;
constexpr std::uint64_t kLookAgainUs = 1'000;  // while a task is being stopped
constexpr std::uint64_t kLeavesWithinUs = 2'000'000;
constexpr std::uint64_t kDiesWithinUs = 10'000'000;
constexpr std::ptrdiff_t kMostAtTheDoor = 16;

Result<bool> is_readable(const Fd& fd) {
  return TRY(sys::poll_one(fd, POLLIN, 0)) != 0;
}

// The other end was closed, as a delegate does that fails or is killed: anybody inside may kill it.
bool is_closed(const Fd& connection) {
  char byte = 0;
  const ssize_t n = ::recv(connection.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno == ECONNRESET);
}

std::string name_of(const Notification& notification) {
  return "exec by task " + std::to_string(notification.task);
}

// What of the limits of a process is wider than the policy's.
Result<std::string> limits_beyond(const HostProcess& process, const Policy& policy) {
  const std::string source = process.name("limits");
  const auto limits = TRY(parse_process_limits(TRY(process.read("limits")), source));
  const std::pair<const char*, std::uint64_t> most[] = {{"Max open files", policy.limits.open_files},
                                                        {"Max core file size", 1},
                                                        {"Max cpu time", cpu_backstop_seconds(policy)}};
  std::string found;
  for (const auto& [row, limit] : most) {
    const auto seen = limits.find(row);
    if (seen == limits.end()) return fault("read " + source + ": no row '" + row + "'");
    const std::string& hard = seen->second.hard;
    if (hard != "unlimited" && TRY(parse_counter(hard + "\n", source)) <= limit) continue;
    found += (found.empty() ? "" : ", ") + std::string(row) + " " + hard + " instead of " + std::to_string(limit);
  }
  return found;
}

std::string joined(std::initializer_list<std::string> differences) {
  std::string text;
  for (const auto& difference : differences)
    if (!difference.empty()) text += (text.empty() ? "" : ", ") + difference;
  return text;
}

}  // namespace

Result<ExecDoors> ExecDoors::open(const SeccompListener& listener, std::string id, const Policy& policy,
                                  const ExpectedFilter& filter, const Ledger& ledger, TaskWatch& tasks,
                                  Supervisor& supervisor, const Fd* limits_from) {
  ExecDoors doors(listener, std::move(id), policy, filter, ledger, tasks, supervisor, limits_from);
  doors.wakes_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!doors.wakes_) return sys_error("epoll_create1", "", errno);
  doors.timer_ = TRY(sys::timerfd());
  TRY_VOID(doors.wake_up_by(doors.timer_));
  TRY_VOID(doors.wake_up_by(listener.fd()));
  return doors;
}

// A task that is being stopped is traced, and nobody else could reap it.
ExecDoors::~ExecDoors() {
  for (const auto& visitor : visitors_) {
    if (visitor.step != Step::stopping) continue;
    static_cast<void>(sys::pidfd_send_signal(visitor.pidfd, SIGKILL));
    static_cast<void>(sys::poll_one(visitor.pidfd, POLLIN, sys::monotonic_us() + kDiesWithinUs));
    static_cast<void>(sys::ptrace_take_exit(visitor.held.task));
  }
}

void ExecDoors::expect() {
  ++expected_;
  tell_tasks();
}

void ExecDoors::over() {
  if (expected_ > 0) --expected_;
  last_over_us_ = sys::monotonic_us();
  if (const auto armed = wake_up_later(); !armed) unread_ = armed.error().message;
}

bool ExecDoors::is_expected() const {
  return expected_ > 0 || (last_over_us_ != 0 && sys::monotonic_us() < last_over_us_ + kLeavesWithinUs);
}

void ExecDoors::tell_tasks() {
  tasks_->leave_delegates_alone(is_expected() || at_the_door() > 0);
}

std::ptrdiff_t ExecDoors::at_the_door() const {
  return std::count_if(visitors_.begin(), visitors_.end(), [](const Visitor& visitor) { return visitor.waits(); });
}

Result<void> ExecDoors::wake_up_by(const Fd& fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(wakes_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) return sys_error("epoll_ctl", "add", errno);
  return {};
}

// The nearest time at which somebody must be looked at again without having said anything.
Result<void> ExecDoors::wake_up_later() {
  std::uint64_t next = is_expected() && expected_ == 0 ? last_over_us_ + kLeavesWithinUs : 0;
  for (const auto& visitor : visitors_) {
    if (!visitor.waits()) continue;
    const std::uint64_t due = visitor.step == Step::stopping ? sys::monotonic_us() + kLookAgainUs : visitor.deadline_us;
    if (next == 0 || due < next) next = due;
  }
  return next == 0 ? Result<void>() : sys::timerfd_at(timer_, next);
}

Result<std::optional<Cause>> ExecDoors::ready() {
  std::uint64_t expirations = 0;
  while (::read(timer_.get(), &expirations, sizeof expirations) > 0) {
  }
  if (TRY(is_readable(listener_->fd()))) TRY_VOID(accept());
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    const auto there = visitor->step == Step::open ? Result<bool>(true) : advance(*visitor);
    if (!there) unread_ = there.error().message;
    visitor = there && *there ? std::next(visitor) : visitors_.erase(visitor);
  }
  tell_tasks();
  TRY_VOID(wake_up_later());
  if (privileges_.none() && syscalls_.none() && unread_.empty()) return std::nullopt;
  return std::optional(Cause::killed);
}

Result<void> ExecDoors::accept() {
  auto connection = listener_->accept_connection();
  if (!connection) {
    unread_ = connection.error().message;
    return {};
  }
  const bool expected = is_expected();
  if (!expected) privileges_.add("an exec", "nobody announced it");
  if (!expected) return {};  // closed: its exec fails
  TRY_VOID(wake_up_by(*connection));
  Visitor visitor;
  visitor.room = at_the_door() < kMostAtTheDoor;
  visitor.connection = std::move(*connection);
  visitor.deadline_us = sys::monotonic_us() + kThroughTheDoorWithinUs;
  visitors_.push_back(std::move(visitor));
  return {};
}

// Who does not get on in time is turned away.
Result<bool> ExecDoors::advance(Visitor& visitor) {
  if (visitor.step == Step::stopping) return read_filter(visitor);
  if (visitor.step == Step::turned_away) return send_home(visitor);
  if (sys::monotonic_us() >= visitor.deadline_us) {
    if (visitor.step == Step::descriptor) return false;
    visitor.step = Step::turned_away;
    return true;
  }
  if (visitor.step == Step::descriptor) return receive(visitor);
  return wait_for_exec(visitor);
}

Result<bool> ExecDoors::receive(Visitor& visitor) {
  if (!TRY(is_readable(visitor.connection))) return true;
  if (is_closed(visitor.connection)) return false;
  visitor.notify = TRY(receive_seccomp_fd(visitor.connection, id_));
  visitor.connection.reset();
  TRY_VOID(wake_up_by(visitor.notify.fd()));
  visitor.step = visitor.room ? Step::exec : Step::turned_away;
  return true;
}

// Before its exec it is the delegate's own program: what it calls is answered as before the run's door, and not counted.
Result<void> ExecDoors::answer_delegate(const Visitor& visitor, const Notification& notification) {
  TRY(ledger_->lets_run(notification.call)
          ? visitor.notify.let_run(notification)
          : visitor.notify.refuse(notification, ledger_->errno_for(notification.call)));
  return {};
}

// Its exec fails, and the delegate's program says so and ends. Were its descriptor closed, it could not even end: runc's panics
// for ever then, in the time of the run.
Result<bool> ExecDoors::send_home(Visitor& visitor) {
  const short seen = TRY(sys::poll_one(visitor.notify.fd(), POLLIN, 0));
  if (seen == 0) return true;
  if ((seen & POLLIN) == 0) return false;
  const auto notification = TRY(visitor.notify.receive());
  if (!notification) return true;
  if (is_exec(*notification))
    TRY(visitor.notify.refuse(*notification, EAGAIN));
  else
    TRY_VOID(answer_delegate(visitor, *notification));
  return true;
}

Result<bool> ExecDoors::wait_for_exec(Visitor& visitor) {
  const short seen = TRY(sys::poll_one(visitor.notify.fd(), POLLIN, 0));
  if (seen == 0) return true;
  if ((seen & POLLIN) == 0) return false;  // the last task with the filter is gone
  const auto notification = TRY(visitor.notify.receive());
  if (!notification) return true;
  if (!is_exec(*notification)) {
    TRY_VOID(answer_delegate(visitor, *notification));
    return true;
  }
  if (visitor.filter_read && notification->task != visitor.held.task) {
    syscalls_.add(name_of(*notification), "another task was looked at");
    return false;
  }
  visitor.held = *notification;
  if (visitor.filter_read || policy_->filter_proof == FilterProof::compiled) return judge(visitor);
  const auto begun = begin_to_stop(visitor);
  // One that was killed meanwhile is met again at its end.
  if (!begun && TRY(visitor.notify.still_waits(visitor.held))) return std::unexpected(begun.error());
  return true;
}

Result<void> ExecDoors::seize(Visitor& visitor) {
  const auto seized = sys::ptrace_seize(visitor.held.task, 0);
  if (!seized && !TRY(is_readable(visitor.pidfd))) return std::unexpected(seized.error());  // and not for being dead
  visitor.seized = seized && *seized;
  return visitor.seized ? sys::ptrace_resume(PTRACE_INTERRUPT, visitor.held.task, 0) : Result<void>();
}

Result<void> ExecDoors::begin_to_stop(Visitor& visitor) {
  visitor.pidfd = TRY(sys::pidfd_open(visitor.held.task));
  visitor.step = Step::stopping;
  return seize(visitor);
}

// The stop voids the notification, and the call is made anew. A task that dies instead has to be reaped for its parent.
Result<bool> ExecDoors::read_filter(Visitor& visitor) {
  const pid_t task = visitor.held.task;
  if (TRY(is_readable(visitor.pidfd))) {
    TRY(sys::ptrace_take_exit(task));
    return false;
  }
  if (!visitor.seized) TRY_VOID(seize(visitor));
  if (!visitor.seized || !TRY(sys::ptrace_next_stop(task))) return true;
  const auto attached = filter_of_stopped(task);
  if (!attached && attached.error().error_number == ESRCH) return true;  // killed, and soon at its end
  look_at_filter(attached);
  visitor.step = Step::exec_again;
  visitor.filter_read = true;
  TRY_VOID(sys::ptrace_resume(PTRACE_DETACH, task, 0));
  return true;
}

void ExecDoors::look_at_filter(const Result<BpfProgram>& attached) {
  if (attached && *attached == filter_->program) return;
  const auto difference = attached ? filter_difference(*attached, filter_->program, policy_->seccomp)
                                   : Result<std::string>(std::unexpected(attached.error()));
  if (!difference)
    unread_ = difference.error().message;
  else
    syscalls_.add("an exec", *difference);
}

Result<bool> ExecDoors::judge(Visitor& visitor) {
  // Once: it takes a process of its own, and Go's runtime signals a thread every 10 ms, which voids a wait that is longer.
  if (limits_from_ && visitor.limited != visitor.held.task) {
    const auto limited = set_limits_from_inside(*policy_, *limits_from_, visitor.held.task);
    // Of a task that was killed meanwhile there is nothing to limit.
    if (!limited && TRY(visitor.notify.still_waits(visitor.held))) return std::unexpected(limited.error());
    if (limited) visitor.limited = visitor.held.task;
  }
  const auto looked = look_at(visitor);
  if (!looked && TRY(visitor.notify.still_waits(visitor.held))) return std::unexpected(looked.error());
  if (!looked) return true;  // killed: its descriptor says so next
  if (!privileges_.none() || !syscalls_.none()) return false;
  // False: a signal voided the wait, and the same exec comes again.
  if (!TRY(visitor.notify.let_run(visitor.held))) return true;
  if (::epoll_ctl(wakes_.get(), EPOLL_CTL_DEL, visitor.notify.fd().get(), nullptr) != 0)
    return sys_error("epoll_ctl", "del", errno);
  ++execs_;
  visitor.step = Step::open;
  visitor.pidfd.reset();
  supervisor_->also_answer(visitor.notify);
  return true;
}

Result<void> ExecDoors::look_at(const Visitor& visitor) {
  const auto process = TRY(HostProcess::open(visitor.held.task));
  const auto posture = TRY(read_posture(process.dir().get(), process.name("")));
  const auto found = posture_differences(posture, tasks_->measure());
  const std::string descriptors = TRY(surviving_descriptors(process)), sockets = TRY(socket_descriptors(process));
  const std::string limits = TRY(limits_beyond(process, *policy_));
  // Still held: then what was read is of this very task, and not of a successor of its number.
  if (!TRY(visitor.notify.still_waits(visitor.held))) return {};
  const std::string who = name_of(visitor.held);
  privileges_.add(who, joined({found.namespaces, found.privileges, found.cgroups, limits,
                               descriptors == "0 1 2" ? "" : "descriptors " + descriptors,
                               sockets == "none" ? "" : "sockets " + sockets}));
  syscalls_.add(who, found.syscalls);
  return {};
}

void ExecDoors::observe(Evidence& evidence) const {
  const auto set = [&](const char* key, const Findings& found, const char* source) {
    if (!found.none() || unread_.empty())
      evidence.set(key, found.text(), source);
    else
      evidence.missing(key, unread_, source);
  };
  set("privileges.exec", privileges_, "/proc/TASK of every exec into the container, before it");
  set("syscalls.exec", syscalls_, "the filter of every exec into the container, before it");
  evidence.set("evidence.execs", execs_, "the run's seccomp listener");
}

void observe_no_execs(Evidence& evidence) {
  const char* source = "the run's seccomp listener, which takes one descriptor";
  evidence.set("privileges.exec", std::string("none"), source);
  evidence.set("syscalls.exec", std::string("none"), source);
  evidence.set("evidence.execs", std::uint64_t{0}, source);
}

}  // namespace benchsand
