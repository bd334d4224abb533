#include "shim/ptrace.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <ctime>

namespace benchsand::sys {

namespace {

constexpr long kSeizeWithinNs = 5'000'000;
constexpr int kTooLate = -1;

sigjmp_buf too_late;

void jump_out(int) {
  ::siglongjmp(too_late, 1);
}

// The kernel begins an interrupted PTRACE_SEIZE anew, whatever the handler does; so the handler does not return to it.
// Returns errno, or kTooLate. No object with a destructor may live here.
int seize_or_jump(pid_t task, unsigned long options, timer_t timer) {
  if (::sigsetjmp(too_late, 1) != 0) return kTooLate;
  itimerspec when{};
  when.it_value.tv_nsec = kSeizeWithinNs;
  if (::timer_settime(timer, 0, &when, nullptr) != 0) return errno;
  const int failed = ::ptrace(PTRACE_SEIZE, task, nullptr, options) == 0 ? 0 : errno;
  when.it_value.tv_nsec = 0;
  return ::timer_settime(timer, 0, &when, nullptr) == 0 ? failed : errno;
}

class OwnTimer {
 public:
  ~OwnTimer() {
    if (armed_) ::timer_delete(timer_);
    if (handled_) ::sigaction(SIGALRM, &before_, nullptr);
    if (masked_) ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  OwnTimer() = default;
  OwnTimer(const OwnTimer&) = delete;
  Result<timer_t> make() {
    struct sigaction action {};
    action.sa_handler = jump_out;
    if (::sigaction(SIGALRM, &action, &before_) != 0) return sys_error("sigaction", "SIGALRM", errno);
    handled_ = true;
    sigset_t alarm;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    if (::sigprocmask(SIG_UNBLOCK, &alarm, &mask_) != 0) return sys_error("sigprocmask", "SIGALRM", errno);
    masked_ = true;
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event._sigev_un._tid = ::gettid();
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) return sys_error("timer_create", "SIGALRM", errno);
    armed_ = true;
    return timer_;
  }

 private:
  struct sigaction before_ {};
  sigset_t mask_{};
  timer_t timer_{};
  bool handled_ = false, masked_ = false, armed_ = false;
};

// Of a seize whose success the timer came too late for.
Result<bool> is_ours(pid_t task) {
  const std::string path = "/proc/" + std::to_string(task) + "/status";
  return TRY(read_file(kHere, path)).find("\nTracerPid:\t" + std::to_string(::gettid()) + "\n") != std::string::npos;
}

}  // namespace

Result<bool> ptrace_seize(pid_t task, unsigned long options) {
  OwnTimer timer;
  const int failed = seize_or_jump(task, options, TRY(timer.make()));
  if (failed == 0) return true;
  // Who is not given a processor for that long may have seized it all the same, now or when it was asked before.
  if ((failed == kTooLate || failed == EPERM) && TRY(is_ours(task))) return true;
  if (failed == kTooLate) return false;
  return sys_error("ptrace PTRACE_SEIZE", std::to_string(task), failed);
}

Result<void> ptrace_resume(int request, pid_t task, int signal) {
  // Through syscall(2): glibc's own takes an enumeration that does not know what a caller computes.
  if (::syscall(SYS_ptrace, request, task, nullptr, static_cast<long>(signal)) == 0 || errno == ESRCH) return {};
  return sys_error("ptrace", "request " + std::to_string(request) + " to task " + std::to_string(task), errno);
}

Result<std::optional<Stop>> ptrace_next_stop(pid_t task) {
  siginfo_t info{};
  int failed = 0;
  do failed = ::waitid(P_PID, static_cast<id_t>(task), &info, WSTOPPED | WNOHANG | __WALL) == 0 ? 0 : errno;
  while (failed == EINTR);
  if (failed == ECHILD || (failed == 0 && info.si_pid == 0)) return std::nullopt;
  if (failed != 0) return sys_error("waitid", "task " + std::to_string(task), failed);
  return Stop{info.si_status & 0xff, info.si_status >> 8};
}

namespace {

// What there is to wait for; nullopt: nothing, or nobody.
Result<std::optional<siginfo_t>> waited_exit(pid_t task, int more) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(task), &info, WEXITED | WNOHANG | __WALL | more) != 0) {
    if (errno == ECHILD) return std::nullopt;
    if (errno != EINTR) return sys_error("waitid", "task " + std::to_string(task), errno);
  }
  if (info.si_pid == 0) return std::nullopt;
  return info;
}

}  // namespace

// Of a traced task the kernel tells stops too, whatever it is asked for: so look before anything is taken.
Result<std::optional<int>> ptrace_take_exit(pid_t task) {
  const auto seen = TRY(waited_exit(task, WNOWAIT));
  if (!seen || (seen->si_code != CLD_EXITED && seen->si_code != CLD_KILLED && seen->si_code != CLD_DUMPED))
    return std::nullopt;
  const auto info = TRY(waited_exit(task, 0));
  if (!info) return std::nullopt;
  if (info->si_code == CLD_EXITED) return (info->si_status & 0xff) << 8;
  return (info->si_status & 0x7f) | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

}  // namespace benchsand::sys
