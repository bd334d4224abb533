#include "shim/supervisor.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace benchsand {

namespace {

constexpr std::uint64_t kSmallestCpuWaitUs = 1'000;
constexpr std::uint64_t kDiesWithinUs = 60'000'000;  // after cgroup.kill; page tables are slow to take down
constexpr unsigned int kMostEndings = 16;            // times that init may begin to end
constexpr std::size_t kMostHeldThreads = 16;         // of init, that have tried to execute
constexpr std::uint64_t kTasksEveryUs = 100'000;
constexpr std::size_t kTasksASample = 16;  // well below a millisecond
constexpr std::size_t kTasksBeforeAKill = 64;
constexpr int kWhileDyingMs = 100, kWhileWaitingMs = 10;

enum Wait { kInit, kWall, kCpu, kSample, kOut, kErr, kSignals, kHold, kCount };

}  // namespace

Result<void> kill_run(const RunCgroup& cgroup, const Door& door) {
  const auto killed = cgroup.kill();
  const auto signaled = sys::pidfd_send_signal(door.pidfd, SIGKILL);
  if (!signaled && signaled.error().error_number != ESRCH) return signaled;
  return killed;
}

Result<Watched> Supervisor::watch() {
  TRY_VOID(start());
  while (TRY(turn())) {
  }
  watched_.wall_used_us = sys::monotonic_us() - started_us_;
  return watched_;
}

Result<void> Supervisor::start() {
  cpu_timer_ = TRY(sys::timerfd());
  sample_timer_ = TRY(sys::timerfd());
  cpu_baseline_us_ = TRY(cgroup_.cpu_usage_us());
  started_us_ = sys::monotonic_us();
  TRY_VOID(sys::timerfd_at(wall_timer_, started_us_ + policy_.limits.wall_time_us));
  TRY_VOID(check_cpu());
  sample_due_us_ = tasks_due_us_ = started_us_;
  TRY_VOID(look_again_later());
  if (open_) return open_();
  // False: a signal voided this notification and the same exec comes again, to be answered in turn().
  TRY(notifies_.front().notify->let_run(door_.held));
  return {};
}

// The fixed ones, then the notify descriptors, then the watches; the last two lists may grow while a turn is served.
void Supervisor::collect_waits() {
  const auto wait_for = [&](const Fd& fd, bool wanted) { waits_.push_back({wanted ? fd.get() : -1, POLLIN, 0}); };
  static const Fd nothing;
  waits_.clear();
  wait_for(door_.pidfd, true);
  wait_for(wall_timer_, !watched_.killed_for);
  wait_for(cpu_timer_, !watched_.killed_for);
  wait_for(sample_timer_, !watched_.killed_for);
  waits_.push_back(out_open_ ? out_.awaits() : pollfd{-1, 0, 0});
  waits_.push_back(err_open_ ? err_.awaits() : pollfd{-1, 0, 0});
  wait_for(signals_, !watched_.interrupted);
  wait_for(hold_ ? hold_->fd() : nothing, true);
  for (const auto& listened : notifies_) wait_for(listened.notify->fd(), listened.open);
  for (const auto& watch : watches_) wait_for(*watch.fd, true);
}

Result<bool> Supervisor::turn() {
  collect_waits();
  const int longest = !waiting_.empty() ? kWhileWaitingMs : watched_.killed_for ? kWhileDyingMs : -1;
  const int n = ::poll(waits_.data(), waits_.size(), longest);
  if (n < 0 && errno != EINTR) return sys_error("poll", "the run", errno);
  if (n < 0) return true;
  // Who froze the run before may do so again, and what a v1 freezer holds does not die.
  if (n == 0 && watched_.killed_for) TRY_VOID(kill_run(cgroup_, door_));
  const auto is_due = [&](Wait wait) { return waits_[wait].revents != 0; };
  if (is_due(kInit)) return false;
  // The caps before the floods: neither a stream of notifications nor of output may delay them.
  if (is_due(kWall)) TRY_VOID(kill_for(Cause::wall_time));
  if (is_due(kCpu)) TRY_VOID(check_cpu());
  if (is_due(kSignals)) {
    watched_.interrupted = true;
    TRY_VOID(kill_for(Cause::killed));
  }
  if (is_due(kSample)) TRY_VOID(look());
  if (is_due(kOut)) TRY_VOID(drain(out_, out_open_));
  if (is_due(kErr)) TRY_VOID(drain(err_, err_open_));
  if (out_.bytes() + err_.bytes() > policy_.stdio_total_bytes) TRY_VOID(kill_for(Cause::output));
  if (is_due(kHold) && !TRY(serve_hold())) return false;
  TRY_VOID(serve_watches());
  if (!waiting_.empty()) TRY_VOID(ask_again());
  if (watched_.killed_for && sys::monotonic_us() > give_up_us_)
    return fault("kill the candidate: it is still there 60 s after cgroup.kill");
  return true;
}

Result<void> Supervisor::serve_watches() {
  // As many as were waited for.
  const std::size_t others = waits_.size() - kCount, notifies = others - watches_.size();
  for (std::size_t i = 0; i < others; ++i) {
    const short seen = waits_[kCount + i].revents;
    if (seen == 0) continue;
    if (i >= notifies) {
      if (const auto cause = TRY(watches_[i - notifies].ready())) TRY_VOID(kill_for(*cause));
    } else if ((seen & POLLIN) != 0) {
      TRY_VOID(answer(*notifies_[i].notify));
    } else {
      notifies_[i].open = false;
    }
  }
  return {};
}

// False: init is about to die of a fault of its own, and waits.
Result<bool> Supervisor::serve_hold() {
  const std::uint64_t before = hold_->stops();
  const bool goes_on = TRY(hold_->serve());
  // Passing a signal on costs time that nobody is charged for, as answering a notification does.
  for (std::uint64_t stop = before; stop < hold_->stops(); ++stop)
    if (ledger_.notified(sys::monotonic_us())) TRY_VOID(kill_for(Cause::refusals));
  if (goes_on) return true;
  watched_.fault = hold_->dying_of();
  if (!watched_.killed_for) TRY_VOID(look_at_ending_init());
  return false;
}

Result<void> Supervisor::answer(const SeccompNotify& notify) {
  const auto notification = TRY(notify.receive());
  if (!notification) return {};
  if (learned_ != nullptr) learned_->saw(notification->call, notification->arguments);
  // What a flood costs is charged to nobody, so it ends the run.
  if (ledger_.notified(sys::monotonic_us())) TRY_VOID(kill_for(Cause::refusals));
  if (!ledger_.lets_run(notification->call)) return refuse(notify, *notification);
  // When init ends, the kernel kills what is left in its pid namespace before anybody can look; so look first.
  if (notification->call == SYS_exit_group && door_.init.has_thread(notification->task) && !watched_.killed_for)
    TRY_VOID(look_at_ending_init());
  if (needs_hold(*notification) && (!waiting_.empty() || !TRY(held(notify, *notification)))) {
    waiting_.push_back({&notify, *notification});
    return {};
  }
  return let_run(notify, *notification);
}

Result<void> Supervisor::let_run(const SeccompNotify& notify, const Notification& notification) {
  // A signal can void the wait, and then the call may never be made again: what was seen was not init's end.
  if (!TRY(notify.let_run(notification)) && !watched_.killed_for) watched_.left_behind.reset();
  return {};
}

// An exec by another thread of init's makes that thread init.
bool Supervisor::needs_hold(const Notification& notification) const {
  return hold_ && is_exec(notification) && notification.task != door_.init.pid() &&
         door_.init.has_thread(notification.task);
}

// False: not possible yet.
Result<bool> Supervisor::held(const SeccompNotify& notify, const Notification& notification) {
  // Whose exec fails stays held, and looking after each costs time at every stop that nobody is charged for.
  if (hold_->threads() >= kMostHeldThreads) TRY_VOID(kill_for(Cause::refusals));
  const auto held = hold_->also(notification.task);
  // A thread that was ended meanwhile cannot be held and need not be.
  if (!held && TRY(notify.still_waits(notification))) return std::unexpected(held.error());
  return !held || *held;
}

// One a turn: each question takes a while, and the caps must not wait for many.
Result<void> Supervisor::ask_again() {
  const Waiting next = waiting_.front();
  if (!TRY(held(*next.notify, next.notification))) return {};
  waiting_.pop_front();
  return let_run(*next.notify, next.notification);
}

// Whoever reads the engine's end sees the end when the candidate closes, as without benchsand.
Result<void> Supervisor::drain(OutputStream& stream, bool& open) {
  open = TRY(stream.drain());
  if (!open) stream.close_sink();
  return {};
}

Result<void> Supervisor::refuse(const SeccompNotify& notify, const Notification& notification) {
  // False: a signal voided the wait, the call is made again or not at all, and nobody was refused.
  if (TRY(notify.refuse(notification, ledger_.errno_for(notification.call))))
    ledger_.count(notification.call, notification.arguments);
  else
    ledger_.count_voided();
  return {};
}

Result<void> Supervisor::look_at_ending_init() {
  // A leader that has exited before its threads has no program any more, and the delegate never leaves its own like that.
  const auto program = door_.init.program();
  if (!program && program.error().error_number != ENOENT && program.error().error_number != ESRCH)
    return std::unexpected(program.error());
  watched_.never_executed = program && *program == door_.program;
  // A signal can void the wait again and again, and every look costs time that nobody is charged for.
  if (++endings_ > kMostEndings) return kill_for(Cause::refusals);
  tasks_.look(kEveryTask);  // what it finds is evidence; init is ending anyway
  return count_left_behind(1);
}

Result<void> Supervisor::count_left_behind(std::uint64_t beside) {
  const std::uint64_t all = TRY(cgroup_.processes());
  watched_.left_behind = all > beside ? all - beside : 0;
  return {};
}

// There is no cgroup primitive for a CPU time cap. The next look is due when the budget could be used up at the earliest:
// all processors at once, but over longer times no faster than cpu.max allows.
Result<void> Supervisor::check_cpu() {
  const std::uint64_t usage = TRY(cgroup_.cpu_usage_us());
  if (usage < cpu_baseline_us_) return fault("read cpu.stat: usage_usec went backwards");
  const std::uint64_t used = usage - cpu_baseline_us_, limit = policy_.limits.cpu_time_us;
  if (used >= limit) return kill_for(Cause::cpu_time);
  const std::uint64_t left = limit - used;
  const std::uint64_t burst = policy_.limits.cpus_milli * 100;  // one period's quota in us
  const std::uint64_t at_quota = left > burst ? (left - burst) * 1000 / policy_.limits.cpus_milli : 0;
  const std::uint64_t wait = std::max({left / processors_, at_quota, kSmallestCpuWaitUs});
  return sys::timerfd_at(cpu_timer_, sys::monotonic_us() + wait);
}

// All that looks at the running candidate from time to time is called from here.
Result<void> Supervisor::look() {
  const std::uint64_t now = sys::monotonic_us();
  watched_.was_frozen = watched_.was_frozen || TRY(cgroup_.frozen());
  if (sampler_ && now >= sample_due_us_) sampler_->sample(now - started_us_, cpu_baseline_us_, ledger_.total());
  // A run that is not what was proven at the door is ended at once; the evidence refuses it.
  // Where a wall was taken down there are tasks as they must not be.
  if (now >= tasks_due_us_ && !tasks_.look(kTasksASample) && policy_.taken_down.empty()) return kill_for(Cause::killed);
  return look_again_later();
}

// Due times are multiples of their interval; what a busy host missed is not made up for.
Result<void> Supervisor::look_again_later() {
  const auto next = [now = sys::monotonic_us()](std::uint64_t& due, std::uint64_t interval) {
    if (due <= now) due += interval;
    if (due <= now) due = now + interval;
  };
  next(tasks_due_us_, kTasksEveryUs);
  if (sampler_) next(sample_due_us_, sampler_->timeline().interval_us());
  return sys::timerfd_at(sample_timer_, sampler_ ? std::min(sample_due_us_, tasks_due_us_) : tasks_due_us_);
}

Result<void> Supervisor::kill_for(Cause cause) {
  if (watched_.killed_for) return {};
  watched_.killed_for = cause;
  give_up_us_ = sys::monotonic_us() + kDiesWithinUs;
  const auto cpu = cgroup_.cpu_usage_us();
  const auto frozen = cgroup_.frozen();
  if (!watched_.interrupted) tasks_.look(kTasksBeforeAKill);
  const auto counted = count_left_behind(0);
  TRY_VOID(kill_run(cgroup_, door_));  // whatever could not be read
  watched_.killed_at_us = sys::monotonic_us() - started_us_;
  watched_.cpu_at_kill_us = TRY(cpu);
  watched_.was_frozen = watched_.was_frozen || TRY(frozen);
  return counted;
}

}  // namespace benchsand
