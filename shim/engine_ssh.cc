#include "shim/engine_ssh.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "oci/report.h"
#include "oci/units.h"
#include "shim/new_mount.h"

namespace benchsand {

namespace {

constexpr const char* kSsh = "/usr/bin/ssh";
constexpr const char* kName = "s";
constexpr int kLookEveryMs = 10;
constexpr std::size_t kLongestWords = 600;

// The user's configuration of ssh holds: names of hosts, keys, jumps. What it may not bring is a question, another process that
// goes on, or a way back into this host.
std::vector<std::string> arguments(const Endpoint& endpoint) {
  std::vector<std::string> words = {
      kSsh, "-N", "-T", "-S", "none", "-L", std::string("./") + kName + ":" + endpoint.path};
  for (const char* option :
       {"BatchMode=yes", "ControlMaster=no", "ExitOnForwardFailure=yes", "ForwardAgent=no", "ForwardX11=no",
        "PermitLocalCommand=no", "StreamLocalBindMask=0177", "StreamLocalBindUnlink=no", "ConnectTimeout=20",
        "ServerAliveInterval=15", "ServerAliveCountMax=2", "LogLevel=INFO"})
    words.insert(words.end(), {"-o", option});
  if (!endpoint.key_file.empty()) words.insert(words.end(), {"-i", endpoint.key_file, "-o", "IdentitiesOnly=yes"});
  if (!endpoint.user.empty()) words.insert(words.end(), {"-l", endpoint.user});
  if (endpoint.port != 0) words.insert(words.end(), {"-p", std::to_string(endpoint.port)});
  words.insert(words.end(), {"--", endpoint.host});
  return words;
}

// Between fork and exec: system calls alone. ssh closes every descriptor but the first three, so its socket is found by the
// working directory.
[[noreturn]] void become_ssh(char* const* argv, pid_t parent, int place, int null, int errors) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  // A terminal's interrupt is for benchsand, which still has calls to make.
  // The standard descriptors of benchsand may be closed, and ours then stand in their places.
  const int high_null = ::fcntl(null, F_DUPFD_CLOEXEC, 10), high_errors = ::fcntl(errors, F_DUPFD_CLOEXEC, 10);
  if (::setsid() < 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent || ::fchdir(place) != 0 ||
      ::dup2(high_null, 0) < 0 || ::dup2(high_null, 1) < 0 || ::dup2(high_errors, 2) < 0 ||
      ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
    ::_exit(127);
  ::execv(kSsh, argv);
  ::_exit(127);
}

Result<Fd> socket_place() {
  NewMount mount = TRY(NewMount::open("tmpfs"));
  TRY_VOID(mount.set("mode", "0700"));
  TRY_VOID(mount.set("size", "64k"));
  return mount.create(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

}  // namespace

Result<SshTunnel> SshTunnel::open(const Endpoint& endpoint, std::uint64_t within_us) {
  if (!TRY(sys::exists(sys::kHere, kSsh)))
    return fault(endpoint.text() + " (" + endpoint.from + "): there is no " + kSsh +
                 " (cure: apt-get install openssh-client)");
  SshTunnel tunnel;
  tunnel.place_ = TRY(socket_place());
  sys::Pipe errors = TRY(sys::pipe());
  TRY_VOID(sys::set_nonblocking(errors.read));
  const Fd null = TRY(sys::openat(sys::kHere, "/dev/null", O_RDWR));
  auto words = arguments(endpoint);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  tunnel.pid_ = ::fork();
  if (tunnel.pid_ < 0) return sys_error("fork", kSsh, errno);
  if (tunnel.pid_ == 0) become_ssh(argv.data(), parent, tunnel.place_.get(), null.get(), errors.write.get());
  tunnel.process_ = TRY(sys::pidfd_open(tunnel.pid_));
  tunnel.errors_ = std::move(errors.read);
  errors.write.reset();
  TRY_VOID(tunnel.wait_until_it_stands(endpoint, within_us));
  static_cast<void>(tunnel.words());  // a greeting of the host
  return tunnel;
}

Result<void> SshTunnel::wait_until_it_stands(const Endpoint& endpoint, std::uint64_t within_us) {
  const std::string where = endpoint.text() + " (" + endpoint.from + "): ";
  const std::uint64_t deadline_us = sys::monotonic_us() + within_us;
  while (!TRY(sys::exists(place_.get(), kName))) {
    const std::uint64_t now_us = sys::monotonic_us();
    if (now_us >= deadline_us)
      return fault(where + "ssh did not connect within " + format_quantity(within_us, Unit::duration_us));
    const short ended = TRY(sys::poll_one(process_, POLLIN, std::min(deadline_us, now_us + kLookEveryMs * 1000)));
    if (ended == 0) continue;
    const std::string said = words();
    return fault(where + (said.empty() ? "ssh ended without a word" : "ssh says: " + said));
  }
  return {};
}

SshTunnel::~SshTunnel() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string SshTunnel::socket() const {
  return "/proc/self/fd/" + std::to_string(place_.get()) + "/" + kName;
}

std::string SshTunnel::words() {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t n = 0; (n = ::read(errors_.get(), buffer.data(), buffer.size())) > 0;)
    if (text.size() < kLongestWords) text.append(buffer.data(), static_cast<std::size_t>(n));
  text.resize(std::min(text.size(), kLongestWords));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == '.')) text.pop_back();
  std::string line;
  for (const char c : text)
    if (c != '\r') line += c == '\n' ? std::string("; ") : std::string(1, c);
  return on_one_line(line);
}

}  // namespace benchsand
