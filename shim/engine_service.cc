#include "shim/engine_service.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace benchsand {

namespace {

constexpr std::uint64_t kReadyWithinUs = 30'000'000;
constexpr const char *kSocket = ".podman", *kLog = ".podman.log", *kFolder = ".podman.d";
// Files that the operator may have named from where he stands, and Podman does not stand there.
constexpr const char* kConfiguration[] = {"CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF"};

Result<std::string> podman_program() {
  for (const char* place : {"/usr/bin/podman", "/usr/local/bin/podman"})
    if (::access(place, X_OK) == 0) return std::string(place);
  return fault("start a podman service: there is no podman in /usr/bin or /usr/local/bin; install podman");
}

// conmon stands where the service does, and leaves an empty file `oom` there when a container ended for memory.
std::string file_of_conmon(const std::string& place) {
  return place + kFolder + "/oom";
}

void forget(const std::string& place) {
  static_cast<void>(sys::unlinkat(sys::kHere, file_of_conmon(place), 0));
  static_cast<void>(sys::unlinkat(sys::kHere, place + kFolder, AT_REMOVEDIR));
  for (const char* what : {kSocket, kLog}) static_cast<void>(sys::unlinkat(sys::kHere, place + what, 0));
}

void name_configuration_from_the_root() {
  for (const char* name : kConfiguration)
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0' && *value != '/')
      ::setenv(name, std::filesystem::absolute(value).c_str(), 1);
}

// A socket that is bound is a file already, and refuses who comes before listen().
bool is_listened_to(const std::string& path) {
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!fd || path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// Between fork and exec. The environment is the operator's: it says where Podman's store is.
[[noreturn]] void become(std::vector<char*>& argv, pid_t parent, int folder, int null, int log) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent || ::fchdir(folder) != 0) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::setsid();  // a terminal's interrupt is ours to answer
  ::dup2(null, 0);
  ::dup2(log, 1);
  ::dup2(log, 2);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

Result<std::string> our_runtime() {
  const std::string self = TRY(sys::readlinkat(sys::kHere, "/proc/self/exe"));
  const std::string here = self.substr(0, self.rfind('/'));
  for (const char* place : {"/benchsand-runtime", "/../../bin/benchsand-runtime"}) {
    std::error_code failed;
    const auto found = std::filesystem::canonical(here + place, failed);
    if (!failed) return found.string();
  }
  return fault("find benchsand-runtime: neither beside " + self + " nor in ../../bin; install benchsand as a whole");
}

Result<PodmanService> PodmanService::start(const std::string& base, const std::string& run,
                                           const std::string& runtime) {
  const std::string place = base + "/" + run;
  const std::string socket = "unix://" + place + kSocket;
  std::vector<std::string> words = {
      TRY(podman_program()), "--runtime", runtime, "system", "service", "--time", "0", socket};
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const Fd null = TRY(sys::openat(sys::kHere, "/dev/null", O_RDWR));
  const Fd log = TRY(sys::openat(sys::kHere, place + kLog, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  // Opened once more: what podman has of it, its children may keep.
  Fd lock = TRY(sys::openat(sys::kHere, place + kLog, O_RDWR | O_NOFOLLOW));
  if (!TRY(sys::try_flock(lock, place + kLog))) return fault("lock " + place + kLog + ": somebody else has it");
  TRY_VOID(sys::mkdirat(sys::kHere, place + kFolder, 0700));
  const Fd folder = TRY(sys::openat(sys::kHere, place + kFolder, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  name_configuration_from_the_root();
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return sys_error("fork", "podman", errno);
  if (pid == 0) become(argv, parent, folder.get(), null.get(), log.get());
  PodmanService service(pid, place, std::move(lock));
  for (const std::uint64_t deadline = sys::monotonic_us() + kReadyWithinUs; sys::monotonic_us() < deadline;) {
    if (is_listened_to(place + kSocket)) return service;
    if (::waitpid(pid, nullptr, WNOHANG) != 0) {
      service.pid_ = -1;
      const auto words_said = sys::read_file(sys::kHere, place + kLog);
      return fault("start a podman service: it ended: " + (words_said ? *words_said : words_said.error().message));
    }
    ::usleep(2'000);
  }
  return fault("start a podman service: it made no socket in time");
}

PodmanService::~PodmanService() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);  // it keeps nothing: containers have monitors of their own
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (!place_.empty()) forget(place_);
}

Result<std::vector<DeadPodmanService>> dead_podman_services(const std::string& base) {
  std::vector<DeadPodmanService> dead;
  if (!TRY(sys::exists(sys::kHere, base))) return dead;
  for (const auto& name : TRY(sys::list_directory(sys::kHere, base))) {
    if (!name.ends_with(kLog)) continue;
    const std::string path = base + "/" + name;
    auto lock = sys::openat(sys::kHere, path, O_RDWR | O_NOFOLLOW);
    if (!lock && lock.error().error_number == ENOENT) continue;
    if (!lock) return std::unexpected(lock.error());
    if (TRY(sys::try_flock(*lock, path)))
      dead.push_back({name.substr(0, name.size() - std::string(kLog).size()), std::move(*lock)});
  }
  return dead;
}

void forget_podman_service(const std::string& base, const std::string& run) {
  forget(base + "/" + run);
}

Endpoint PodmanService::endpoint() const {
  Endpoint endpoint;
  endpoint.path = place_ + kSocket;
  endpoint.from = "benchsand's own podman service";
  return endpoint;
}

}  // namespace benchsand
