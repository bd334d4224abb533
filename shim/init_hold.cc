#include "shim/init_hold.h"

#include <poll.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "shim/ptrace.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kDiesWithinUs = 10'000'000;
constexpr std::uint64_t kSeizedWithinUs = 1'000'000;
constexpr std::uint64_t kFaultsWithinUs = 1'000'000;

// The text behind "NAME:\t" in /proc/PID/status.
Result<std::string> status_field(const std::string& text, const std::string& name, const std::string& source) {
  const std::string key = "\n" + name + ":\t";
  const std::size_t at = text.find(key), end = text.find('\n', at + 1);
  if (at == std::string::npos || end == std::string::npos) return fault("read " + source + ": no line " + name);
  return text.substr(at + key.size(), end - at - key.size());
}

// What the kernel sends to a task for what that task itself has just done.
bool is_own_fault(const siginfo_t& info) {
  constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
  return info.si_code > 0 && std::find(std::begin(kFaults), std::end(kFaults), info.si_signo) != std::end(kFaults);
}

// Makes a fault that init stands before come again. A trap has the instruction behind it: int3, or syscall. And not every SIGSEGV
// comes of an instruction (a signal frame that cannot be written or read does not), so init goes on where it has no memory.
// False: it was killed meanwhile.
Result<bool> rewind_fault(pid_t task, const siginfo_t& info) {
  constexpr std::uint64_t kKernels = 0xffff800000000000;  // never the program's
  const std::uint64_t length = info.si_signo == SIGSYS                                 ? 2
                               : info.si_signo == SIGTRAP && info.si_code == SI_KERNEL ? 1
                                                                                       : 0;
  user_regs_struct registers{};
  const auto failed = [](const char* request) -> Result<bool> {
    if (errno == ESRCH) return false;
    return sys_error("ptrace", request, errno);
  };
  if (::ptrace(PTRACE_GETREGS, task, nullptr, &registers) != 0) return failed("PTRACE_GETREGS");
  registers.rip = info.si_signo == SIGSEGV ? kKernels : registers.rip - length;
  if (::ptrace(PTRACE_SETREGS, task, nullptr, &registers) != 0) return failed("PTRACE_SETREGS");
  return true;
}

// After a single step the next instruction would be executed first, and it may be any.
bool comes_again(const siginfo_t& info) {
  return info.si_signo != SIGTRAP || info.si_code == SI_KERNEL;
}

bool is_stopping(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace

Result<InitHold> InitHold::seize(pid_t init) {
  // Ignored, as a caller may have left it, the kernel would reap for us, and tell us of no stop.
  if (::signal(SIGCHLD, SIG_DFL) == SIG_ERR) return sys_error("signal", "SIGCHLD", errno);
  InitHold hold;
  hold.ends_at_destruction_ = false;
  hold.init_ = init;
  const std::string path = "/proc/" + std::to_string(init);
  hold.dir_ = TRY(sys::open_directory(sys::kHere, path));
  hold.pidfd_ = TRY(sys::pidfd_open(init));
  const std::string numbers =
      TRY(status_field(TRY(sys::read_file(hold.dir_.get(), "status")), "NSpid", path + "/status"));
  hold.namespace_init_ = numbers.ends_with("\t1");
  hold.signals_ = TRY(sys::signalfd({SIGCHLD}));
  for (const std::uint64_t deadline = sys::monotonic_us() + kSeizedWithinUs;
       !TRY(sys::ptrace_seize(init, sys::kExitKill));)
    if (sys::monotonic_us() >= deadline)
      return fault("hold init: it is in the middle of an exec, where it should wait before one");
  hold.ends_at_destruction_ = true;
  return hold;
}

InitHold::~InitHold() {
  if (!pidfd_ || !ends_at_destruction_) return;
  static_cast<void>(sys::pidfd_send_signal(pidfd_, SIGKILL));
  static_cast<void>(release(sys::monotonic_us() + kDiesWithinUs, false));
}

Result<bool> InitHold::serve() {
  // First the signal, then the stops: a stop that comes later makes the descriptor readable again.
  signalfd_siginfo drained{};
  while (::read(signals_.get(), &drained, sizeof drained) > 0) {
  }
  for (std::size_t i = 0; i < threads_.size();) {
    bool over = false;
    TRY_VOID(serve_one(threads_[i], over));
    if (!over && !TRY(sys::exists(dir_.get(), "task/" + std::to_string(threads_[i])))) over = true;
    // Nobody else can reap it, and init cannot end before it is. While it is listed, the number is this thread's.
    if (!over && TRY(sys::ptrace_take_exit(threads_[i]))) over = true;
    if (over)
      threads_.erase(threads_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  bool over = false;
  if (!dying_of_) TRY_VOID(serve_one(init_, over));
  return !dying_of_;
}

Result<void> InitHold::serve_one(pid_t task, bool& over) {
  const auto stop = TRY(sys::ptrace_next_stop(task));
  if (!stop) return {};
  ++stops_;
  if (stop->event == 0) return pass_on_signal(task, stop->signal, over);
  // A group-stop lasts until SIGCONT; the other stops with this event are its end.
  const bool stopped = stop->event == PTRACE_EVENT_STOP && is_stopping(stop->signal);
  return sys::ptrace_resume(stopped ? PTRACE_LISTEN : PTRACE_CONT, task, 0);
}

Result<void> InitHold::pass_on_signal(pid_t task, int signal, bool& over) {
  siginfo_t info{};
  if (::ptrace(PTRACE_GETSIGINFO, task, nullptr, &info) != 0) {
    if (errno == ESRCH) return {};  // killed meanwhile
    return sys_error("ptrace PTRACE_GETSIGINFO", std::to_string(task), errno);
  }
  // The first process of a pid namespace is spared the signals that it did not ask for. What is decided when a signal is sent
  // the kernel leaves to the tracer, and that is SIGSTOP from inside (from outside, si_pid is 0).
  const bool spared = namespace_init_ && signal == SIGSTOP && info.si_code <= 0 && info.si_pid != 0;
  // And while it is traced, it is spared even its own faults: it would fault for ever.
  if (namespace_init_ && is_own_fault(info) && !TRY(is_caught(task, signal))) {
    if (!TRY(rewind_fault(task, info))) return {};
    if (task == init_) {
      dying_of_ = signal;
      comes_again_ = comes_again(info);
      return {};
    }
    over = true;
    return sys::ptrace_resume(PTRACE_DETACH, task, signal);
  }
  return sys::ptrace_resume(PTRACE_CONT, task, spared ? 0 : signal);
}

Result<bool> InitHold::is_caught(pid_t task, int signal) const {
  const std::string file = "task/" + std::to_string(task) + "/status";
  const std::string digits = TRY(status_field(TRY(sys::read_file(dir_.get(), file)), "SigCgt", file));
  std::uint64_t bits = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size())
    return fault("read " + file + ": SigCgt is '" + digits + "', not a number");
  return (bits >> (signal - 1) & 1) != 0;
}

Result<bool> InitHold::also(pid_t task) {
  if (task == init_ || std::find(threads_.begin(), threads_.end(), task) != threads_.end()) return true;
  if (!TRY(sys::ptrace_seize(task, sys::kExitKill))) return false;
  threads_.push_back(task);
  return true;
}

// Untraced, it faults once more and dies of it as it would have. Only then the kernel gives it to its parent at once. Another
// thread, another process that shares memory or a handler could undo the fault; init would go on with nobody watching.
Result<int> InitHold::let_die_of_fault(std::uint64_t deadline_us, bool alone) {
  const bool single = TRY(sys::list_directory(dir_.get(), "task")).size() == 1;
  if (!alone || !single || !comes_again_) return kill_at_fault(deadline_us);
  std::uint64_t every = ~std::uint64_t{0};
  if (::ptrace(PTRACE_SETSIGMASK, init_, sizeof every, &every) != 0) return kill_at_fault(deadline_us);
  TRY_VOID(sys::ptrace_resume(PTRACE_DETACH, init_, 0));
  const std::uint64_t soon = sys::monotonic_us() + kFaultsWithinUs;
  if (TRY(sys::poll_one(pidfd_, POLLIN, std::min(deadline_us, soon))) != 0) return *dying_of_;
  static_cast<void>(sys::pidfd_send_signal(pidfd_, SIGKILL));
  return fault("let init die of signal " + std::to_string(*dying_of_) + ": it is still there");
}

// Its parent sees SIGKILL, or what else has ended it before.
Result<int> InitHold::kill_at_fault(std::uint64_t deadline_us) {
  const auto killed = sys::pidfd_send_signal(pidfd_, SIGKILL);
  if (!killed && killed.error().error_number != ESRCH) return std::unexpected(killed.error());
  for (;;) {
    static_cast<void>(TRY(serve()));  // the other threads that are held
    if (const auto status = TRY(sys::ptrace_take_exit(init_)))
      return (*status & 0x7f) == SIGKILL ? *dying_of_ : *status;
    if (TRY(sys::poll_one(signals_, POLLIN, deadline_us)) == 0)
      return fault("end init, which faulted with signal " + std::to_string(*dying_of_) + ": it is still there");
  }
}

Result<int> InitHold::release(std::uint64_t deadline_us, bool alone) {
  ends_at_destruction_ = false;
  if (!released_) released_ = TRY(let_go(deadline_us, alone));
  return *released_;
}

Result<int> InitHold::let_go(std::uint64_t deadline_us, bool alone) {
  for (;;) {
    if (const auto status = TRY(sys::ptrace_take_exit(init_))) return *status;
    if (!TRY(serve())) return let_die_of_fault(deadline_us, alone);
    if (const auto status = TRY(sys::ptrace_take_exit(init_))) return *status;
    if (TRY(sys::poll_one(signals_, POLLIN, deadline_us)) == 0) return fault("let init go: it has not ended in time");
  }
}

}  // namespace benchsand
