#include "shim/helper_process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace benchsand {

namespace {

enum Number { kLifeline, kReport, kDescriptor };  // in the child, and nothing above

// What benchsand holds is locks, cgroups and the caller's pipes: they must not outlive it in a child. A descriptor may itself
// stand at a low number; so first all are moved out of the way.
bool keep_only(const std::array<int, 3>& wanted) {
  const unsigned int count = wanted[kDescriptor] < 0 ? kDescriptor : kDescriptor + 1;
  std::array<int, 3> high{};
  for (unsigned int i = 0; i < count; ++i)
    if ((high[i] = ::fcntl(wanted[i], F_DUPFD_CLOEXEC, 10)) < 0) return false;
  for (unsigned int i = 0; i < count; ++i)
    if (::dup2(high[i], static_cast<int>(i)) < 0) return false;
  return ::syscall(SYS_close_range, count, ~0U, 0) == 0;
}

[[noreturn]] void run_child(const std::array<int, 3>& wanted, const std::function<int(int)>& work,
                            const HelperProcess::Stay& stay) {
  sigset_t none;
  ::sigemptyset(&none);
  if (::sigprocmask(SIG_SETMASK, &none, nullptr) != 0 || !keep_only(wanted)) ::_exit(127);
  const int failed = work(kDescriptor);
  if (::write(kReport, &failed, sizeof failed) != sizeof failed) ::_exit(127);
  if (stay && failed == 0) stay(kLifeline);
  char nothing = 0;
  while (::read(kLifeline, &nothing, 1) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

}  // namespace

Result<HelperProcess> HelperProcess::start(const std::string& call, const std::string& object,
                                           const std::function<int(int)>& work, int descriptor, const Stay& stay) {
  sys::Pipe lifeline = TRY(sys::pipe()), report = TRY(sys::pipe());
  const pid_t pid = ::fork();
  if (pid < 0) return sys_error("fork", "a helper process", errno);
  if (pid == 0) run_child({lifeline.read.get(), report.write.get(), descriptor}, work, stay);
  HelperProcess helper(pid, std::move(lifeline.write));
  report.write.reset();
  int failed = 0;
  ssize_t n = 0;
  do n = ::read(report.read.get(), &failed, sizeof failed);
  while (n < 0 && errno == EINTR);
  if (n != sizeof failed) return fault(call + " " + object + ": the process that tried it is gone");
  if (failed != 0) return sys_error(call, object, failed);
  return helper;
}

HelperProcess::~HelperProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace benchsand
