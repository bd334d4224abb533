// The wrappers of sys.h for locks, pipes, memory files, processes and clocks.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "shim/sys.h"

namespace benchsand::sys {

Result<bool> try_flock(const Fd& fd, const std::string& name) {
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return sys_error("lock", name, errno);
}

Result<void> flock(const Fd& fd, const std::string& name, bool exclusive) {
  while (::flock(fd.get(), exclusive ? LOCK_EX : LOCK_SH) != 0)
    if (errno != EINTR) return sys_error("lock", name, errno);
  return {};
}

Result<Pipe> pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return sys_error("pipe2", "", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<void> set_nonblocking(const Fd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) return sys_error("fcntl", "O_NONBLOCK", errno);
  return {};
}

namespace {

Result<Fd> memory_file(const std::string& name) {
  const int fd = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return sys_error("memfd_create", name, errno);
  return Fd(fd);
}

// EBUSY while the kernel still holds a page of the file for its own ends (migration, writeback): it passes.
Result<void> seal(const Fd& fd, const std::string& name) {
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  for (int attempt = 0; ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0; ++attempt) {
    if (errno != EBUSY || attempt == 100) return sys_error("seal", name, errno);
    const timespec pause = {0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return sys_error("lseek", name, errno);
  return {};
}

}  // namespace

Result<Fd> sealed_memory(const std::string& name, std::string_view bytes) {
  Fd fd = TRY(memory_file(name));
  TRY_VOID(write_all(fd, bytes, name));
  TRY_VOID(seal(fd, name));
  return fd;
}

Result<Fd> sealed_copy(const std::string& name, const Fd& file, std::uint64_t size) {
  Fd fd = TRY(memory_file(name));
  off_t offset = 0;
  while (static_cast<std::uint64_t>(offset) < size) {
    const ssize_t n = ::sendfile(fd.get(), file.get(), &offset, size - static_cast<std::uint64_t>(offset));
    if (n < 0) return sys_error("copy", name, errno);
    if (n == 0) return fault("copy " + name + ": the file became shorter");
  }
  TRY_VOID(seal(fd, name));
  return fd;
}

Result<Fd> pidfd_open(pid_t pid) {
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return sys_error("pidfd_open", std::to_string(pid), errno);
  return Fd(static_cast<int>(fd));
}

Result<Fd> pidfd_getfd(const Fd& pidfd, int number) {
  const long fd = ::syscall(SYS_pidfd_getfd, pidfd.get(), number, 0);
  if (fd < 0) return sys_error("pidfd_getfd", std::to_string(number), errno);
  return Fd(static_cast<int>(fd));
}

Result<void> pidfd_send_signal(const Fd& pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) != 0)
    return sys_error("pidfd_send_signal", std::to_string(signal), errno);
  return {};
}

Result<std::optional<int>> wait_child(const Fd& pidfd, std::uint64_t deadline_us) {
  if (TRY(poll_one(pidfd, POLLIN, deadline_us)) == 0) return std::nullopt;
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd.get()), &info, WEXITED) != 0)
    return sys_error("waitid", "pidfd", errno);
  const int status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
  return status;
}

Result<Fd> timerfd() {
  const int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (fd < 0) return sys_error("timerfd_create", "CLOCK_MONOTONIC", errno);
  return Fd(fd);
}

Result<void> timerfd_at(const Fd& timer, std::uint64_t us) {
  itimerspec when{};
  when.it_value = {static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
  if (::timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &when, nullptr) != 0)
    return sys_error("timerfd_settime", std::to_string(us), errno);
  return {};
}

Result<std::uint64_t> timerfd_left_us(const Fd& timer) {
  itimerspec now{};
  if (::timerfd_gettime(timer.get(), &now) != 0) return sys_error("timerfd_gettime", "", errno);
  return static_cast<std::uint64_t>(now.it_value.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.it_value.tv_nsec) / 1000;
}

namespace {

sigset_t set_of(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

// With a valid set and a valid way to apply it, sigprocmask does not fail.
SignalsLetThrough::SignalsLetThrough(const std::vector<int>& signals) {
  const sigset_t set = set_of(signals);
  ::sigprocmask(SIG_UNBLOCK, &set, &before_);
}

SignalsLetThrough::~SignalsLetThrough() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Result<Fd> signalfd(const std::vector<int>& signals) {
  const sigset_t set = set_of(signals);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return sys_error("sigprocmask", "", errno);
  const int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return sys_error("signalfd", "", errno);
  return Fd(fd);
}

std::uint64_t monotonic_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

std::string utc_now() {
  const std::time_t now = ::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text.data(), length);
}

Result<std::string> random_hex(std::size_t bytes) {
  std::vector<unsigned char> random(bytes);
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(bytes))
    return sys_error("getrandom", std::to_string(bytes), errno);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : random) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

Result<short> poll_one(const Fd& fd, short events, std::uint64_t deadline_us) {
  for (;;) {
    const std::uint64_t now = monotonic_us();
    const std::uint64_t left = deadline_us > now ? deadline_us - now : 0;
    const timespec wait = {static_cast<time_t>(left / 1'000'000), static_cast<long>(left % 1'000'000 * 1000)};
    pollfd entry = {fd.get(), events, 0};
    const int n = ::ppoll(&entry, 1, &wait, nullptr);
    if (n > 0) return entry.revents;
    if (n < 0 && errno != EINTR) return sys_error("poll", "", errno);
    if (left == 0) return static_cast<short>(0);
  }
}

}  // namespace benchsand::sys
