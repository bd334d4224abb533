#include "shim/delegate.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace benchsand {

namespace {

constexpr rlim_t kUsualStack = 8 << 20;
constexpr std::uint64_t kEndWithinUs = 10'000'000;

// What the child needs, laid out before the fork: between fork and exec nothing may allocate.
struct Child {
  int lifeline = -1, report = -1, exit_code = -1;
  std::array<int, 3> standard{};
  int binary = -1;
  const char* binary_path = nullptr;  // to be opened anew; null: execute `binary` as it is
  const Attachment* attachments = nullptr;
  std::size_t attachment_count = 0;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
};

[[noreturn]] void give_up(const Child& child, const char* step) {
  const int failed = errno;
  std::array<char, 256> text{};
  const std::size_t length = std::min(std::strlen(step), text.size());
  std::memcpy(text.data(), step, length);
  std::array<iovec, 2> parts = {{{const_cast<int*>(&failed), sizeof failed}, {text.data(), length}}};
  const ssize_t ignored = ::writev(child.report, parts.data(), 2);  // the reader sees a closed pipe otherwise
  static_cast<void>(ignored);
  ::_exit(127);
}

void must(const Child& child, const char* step, bool ok) {
  if (!ok) give_up(child, step);
}

// A standard descriptor may itself stand at 0, 1 or 2; so first move all three out of the way.
void set_standard_descriptors(const Child& child) {
  std::array<int, 3> high{};
  for (std::size_t i = 0; i < 3; ++i) {
    high[i] = ::fcntl(child.standard[i], F_DUPFD_CLOEXEC, 10);
    must(child, "fcntl F_DUPFD", high[i] >= 0);
  }
  for (std::size_t i = 0; i < 3; ++i) must(child, "dup2", ::dup2(high[i], static_cast<int>(i)) >= 0);
}

void reset_signals(const Child& child) {
  sigset_t none;
  ::sigemptyset(&none);
  must(child, "sigprocmask", ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);  // KILL and STOP refuse, rightly
}

// runc protects itself by a bind mount of its own file, which fails for a file opened in another mount namespace. So it is
// opened again here, and must be the file that was hashed.
int binary_in_this_namespace(const Child& child) {
  if (!child.binary_path) return child.binary;
  const int again = ::open(child.binary_path, O_RDONLY | O_CLOEXEC);
  must(child, "open the delegate again", again >= 0);
  struct stat known {
  }, found{};
  must(child, "stat the delegate", ::fstat(child.binary, &known) == 0 && ::fstat(again, &found) == 0);
  errno = ESTALE;
  must(child, "find the delegate unchanged", known.st_dev == found.st_dev && known.st_ino == found.st_ino);
  return again;
}

// What benchsand was started with must not colour the candidate's run: a shell's ulimit, a scheduling class, a processor to
// stay on. The bundle sets the limits that are walls; the others are as wide as this host allows.
void reset_what_is_inherited(const Child& child) {
  must(child, "setpriority", ::setpriority(PRIO_PROCESS, 0, 0) == 0);
  const sched_param ordinary{};
  must(child, "sched_setscheduler", ::sched_setscheduler(0, SCHED_OTHER, &ordinary) == 0);
  cpu_set_t every;
  std::memset(&every, 0xff, sizeof every);
  must(child, "sched_setaffinity", ::sched_setaffinity(0, sizeof every, &every) == 0);
  must(child, "personality", ::personality(PER_LINUX) != -1);
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit{};
    must(child, "getrlimit", ::syscall(SYS_prlimit64, 0, resource, nullptr, &limit) == 0);
    limit.rlim_cur = resource == RLIMIT_STACK ? std::min<rlim_t>(limit.rlim_max, kUsualStack) : limit.rlim_max;
    must(child, "setrlimit", ::syscall(SYS_prlimit64, 0, resource, &limit, nullptr) == 0);
  }
}

[[noreturn]] void run_delegate(const Child& child) {
  must(child, "setsid", ::setsid() >= 0);
  set_standard_descriptors(child);
  reset_signals(child);
  ::umask(022);
  reset_what_is_inherited(child);
  must(child, "close_range", ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0);
  ::syscall(SYS_execveat, binary_in_this_namespace(child), "", child.arguments, child.environment, AT_EMPTY_PATH);
  give_up(child, "execveat the delegate");
}

// Hands on the delegate's wait status and then does nothing until it is killed; above all it reaps nobody else.
[[noreturn]] void keep(const Child& child, pid_t delegate) {
  const int exit_code = ::fcntl(child.exit_code, F_DUPFD_CLOEXEC, 0);
  // A copy of benchsand's descriptors here would keep pipes and locks alive after benchsand.
  if (exit_code != 0) ::dup2(exit_code, 0);
  ::syscall(SYS_close_range, 1U, ~0U, 0);
  int status = 0;
  while (::waitpid(delegate, &status, 0) < 0 && errno == EINTR) {
  }
  const ssize_t ignored = ::write(0, &status, sizeof status);  // the reader sees a closed pipe otherwise
  static_cast<void>(ignored);
  for (;;) ::pause();
}

void die_with_benchsand(const Child& child) {
  must(child, "prctl PR_SET_PDEATHSIG", ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  // benchsand may have died before the line above; then its end of this pipe is closed already.
  pollfd lifeline = {child.lifeline, 0, 0};
  if (::poll(&lifeline, 1, 0) != 0) ::_exit(127);
}

void attach_mounts(const Child& child) {
  for (std::size_t i = 0; i < child.attachment_count; ++i) {
    const Attachment& attachment = child.attachments[i];
    must(child, "move_mount",
         ::syscall(SYS_move_mount, attachment.mount->get(), "", AT_FDCWD, attachment.target.c_str(),
                   MOVE_MOUNT_F_EMPTY_PATH) == 0);
  }
}

[[noreturn]] void run_keeper(const Child& child) {
  die_with_benchsand(child);
  must(child, "make mounts private", ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  // The delegate reads /proc/self; in its own pid namespace that needs a proc of its own.
  must(child, "mount /proc", ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0);
  attach_mounts(child);
  // vfork: the child executes at once, and copying page tables for that costs as much as a namespace.
  const pid_t delegate = ::vfork();
  must(child, "vfork the delegate", delegate >= 0);
  if (delegate == 0) run_delegate(child);
  keep(child, delegate);
}

[[noreturn]] void run_without_keeper(const Child& child) {
  die_with_benchsand(child);
  must(child, "make mounts private", ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  attach_mounts(child);
  run_delegate(child);
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (auto& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

struct Keeper {
  Fd pidfd;
  pid_t pid = 0;
};

Result<Keeper> clone_keeper(const Child& child, std::uint64_t namespaces, const Fd& lifeline) {
  int pidfd = -1;
  clone_args args{};
  args.flags = namespaces | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return sys_error("clone3", "CLONE_NEWNS, with CLONE_NEWPID for a keeper", errno);
  if (pid == 0) {
    ::close(lifeline.get());  // or our own copy would keep the pipe open for ever
    if ((namespaces & CLONE_NEWPID) == 0) run_without_keeper(child);
    run_keeper(child);
  }
  return Keeper{Fd(pidfd), static_cast<pid_t>(pid)};
}

// Nothing until exec closed the pipe; otherwise errno and the step that failed.
Result<void> read_report(const Fd& report) {
  std::array<char, 300> text{};
  ssize_t n = 0;
  do n = ::read(report.get(), text.data(), text.size());
  while (n < 0 && errno == EINTR);
  if (n < 0) return sys_error("read", "the delegate's start report", errno);
  if (n == 0) return {};
  int failed = 0;
  if (static_cast<std::size_t>(n) < sizeof failed) return fault("start the delegate: it died before it could say why");
  std::memcpy(&failed, text.data(), sizeof failed);
  return sys_error("start the delegate:",
                   std::string(text.data() + sizeof failed, static_cast<std::size_t>(n) - sizeof failed), failed);
}

}  // namespace

Result<Delegate> Delegate::start(const DelegateBinary& binary, DelegateStart start) {
  return start_in(CLONE_NEWPID | CLONE_NEWNS, binary, std::move(start));
}

Result<Delegate> Delegate::start_without_keeper(const DelegateBinary& binary, DelegateStart start) {
  return start_in(CLONE_NEWNS, binary, std::move(start));
}

Result<Delegate> Delegate::start_in(std::uint64_t namespaces, const DelegateBinary& binary, DelegateStart start) {
  std::vector<std::string> arguments = {binary.facts.name};
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
  std::vector<std::string> environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  const auto argv = pointers(arguments), envp = pointers(environment);
  sys::Pipe lifeline = TRY(sys::pipe()), report = TRY(sys::pipe()), exit_code = TRY(sys::pipe());
  Child child;
  child.lifeline = lifeline.read.get();
  child.report = report.write.get();
  child.exit_code = exit_code.write.get();
  child.standard = {start.standard_input.get(), start.standard_output.get(), start.standard_error.get()};
  child.binary = binary.file.get();
  if (!binary.sealed) child.binary_path = binary.path.c_str();
  child.attachments = start.attachments.data();
  child.attachment_count = start.attachments.size();
  child.arguments = argv.data();
  child.environment = envp.data();

  Delegate delegate;
  if ((namespaces & CLONE_NEWPID) != 0) delegate.exit_pipe_ = std::move(exit_code.read);
  delegate.lifeline_ = std::move(lifeline.write);
  Keeper keeper = TRY(clone_keeper(child, namespaces, delegate.lifeline_));
  delegate.keeper_ = std::move(keeper.pidfd);
  delegate.keeper_pid_ = keeper.pid;
  report.write.reset();
  delegate.report_ = std::move(report.read);
  return delegate;
}

Result<void> Delegate::executed() {
  return read_report(std::exchange(report_, Fd()));
}

// On an error path nobody is left to look at a failure; the kernel kills the keeper with benchsand at the latest.
Delegate::~Delegate() {
  if (keeper_ && kill()) static_cast<void>(wait_end());
}

Result<std::optional<int>> Delegate::wait(std::uint64_t deadline_us) {
  if (status_) return status_;
  int status = 0;
  if (!has_keeper()) {
    const auto ended = TRY(sys::wait_child(keeper_, deadline_us));
    if (!ended) return std::nullopt;
    status = *ended;
  } else if (TRY(sys::poll_one(exit_pipe_, POLLIN, deadline_us)) == 0) {
    return std::nullopt;
  } else if (::read(exit_pipe_.get(), &status, sizeof status) != sizeof status) {
    return fault("read the exit status of the delegate: its keeper is gone");
  }
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

// The keeper is our child and not waited for, so its number is its own.
Result<Fd> Delegate::processes() const {
  if (!has_keeper()) return fault("list the processes of the run: it has no keeper");
  const std::string root = "/proc/" + std::to_string(keeper_pid_) + "/root";
  return sys::open_directory(TRY(sys::openat(sys::kHere, root, O_PATH | O_DIRECTORY)).get(), "proc");
}

Result<void> Delegate::kill() const {
  if (!has_keeper() && status_) return {};
  return sys::pidfd_send_signal(keeper_, SIGKILL);
}

Result<void> Delegate::wait_end() {
  if (!has_keeper() && status_) return {};
  const Fd keeper = std::move(keeper_);
  if (!TRY(sys::wait_child(keeper, sys::monotonic_us() + kEndWithinUs)))
    return fault("wait for the processes of the run: still there 10 s after SIGKILL");
  return {};
}

}  // namespace benchsand
