#include "shim/filter_dump.h"

#include <linux/filter.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>

namespace benchsand {

namespace {

constexpr std::uint64_t kStopsWithinUs = 5'000'000;

// A task stopped by us; let go with its owner.
class Stopped {
 public:
  static Result<Stopped> stop(pid_t task) {
    if (::ptrace(PTRACE_SEIZE, task, nullptr, nullptr) != 0) return sys_error("ptrace", "PTRACE_SEIZE", errno);
    Stopped stopped(task);
    if (::ptrace(PTRACE_INTERRUPT, task, nullptr, nullptr) != 0) return sys_error("ptrace", "PTRACE_INTERRUPT", errno);
    const std::uint64_t deadline = sys::monotonic_us() + kStopsWithinUs;
    for (;;) {
      int status = 0;
      const pid_t got = ::waitpid(task, &status, __WALL | WNOHANG);
      if (got == task && WIFSTOPPED(status)) return stopped;
      if (got == task || (got < 0 && errno != EINTR)) return fault("stop the task to read its filter: it is gone");
      if (sys::monotonic_us() >= deadline) return fault("stop the task to read its filter: it did not stop in time");
      const timespec pause = {0, 20'000};
      ::nanosleep(&pause, nullptr);
    }
  }
  Stopped(Stopped&& other) noexcept : task_(std::exchange(other.task_, 0)) {}
  Stopped(const Stopped&) = delete;
  ~Stopped() {
    if (task_ != 0) ::ptrace(PTRACE_DETACH, task_, nullptr, nullptr);
  }

 private:
  explicit Stopped(pid_t task) : task_(task) {}
  pid_t task_;
};

}  // namespace

Result<BpfProgram> dump_filter(pid_t task) {
  const auto stopped = TRY(Stopped::stop(task));
  return filter_of_stopped(task);
}

Result<BpfProgram> filter_of_stopped(pid_t task) {
  const long length = ::ptrace(PTRACE_SECCOMP_GET_FILTER, task, nullptr, nullptr);
  if (length <= 0) {
    Error error = sys_error("ptrace", "PTRACE_SECCOMP_GET_FILTER", errno).error();
    error.message +=
        "; the kernel needs CONFIG_CHECKPOINT_RESTORE, and benchsand must be root without a seccomp filter of its own "
        "(a profile may say filter_proof: compiled)";
    return std::unexpected(std::move(error));
  }
  std::vector<sock_filter> filter(static_cast<std::size_t>(length));
  if (::ptrace(PTRACE_SECCOMP_GET_FILTER, task, nullptr, filter.data()) != length)
    return sys_error("ptrace", "PTRACE_SECCOMP_GET_FILTER", errno);
  BpfProgram program;
  for (const auto& instruction : filter)
    program.push_back({instruction.code, instruction.jt, instruction.jf, instruction.k});
  return program;
}

}  // namespace benchsand
