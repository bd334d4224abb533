#include "shim/subprocess.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string_view>

#include "shim/run_folder.h"

namespace benchsand {

namespace {

// Between fork and exec: system calls alone. runc goes to the container's root file system by the name it was created with, which
// exists in the mount namespace of that create alone; an empty directory of the name is enough for it.
[[noreturn]] void become(const char* path, char* const* argv, char* const* environment, int null, pid_t parent) {
  const std::string_view rootfs = kRootfsPlace;
  // A start whose call was killed would wait at the FIFO of a container that is gone, for ever.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  for (int fd = 0; null >= 0 && fd < 3; ++fd)
    if (::dup2(null, fd) < 0) ::_exit(127);
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", kMountBase, "tmpfs", MS_NOSUID | MS_NODEV, "size=4k,mode=0711") != 0 ||
      ::mkdir(rootfs.data(), 0700) != 0)
    ::_exit(127);
  ::execve(path, argv, environment);
  ::_exit(127);
}

}  // namespace

Result<int> run_delegate(const DelegateBinary& delegate, const std::vector<std::string>& arguments, Stdio stdio) {
  std::vector<std::string> words = {delegate.facts.name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  char* environment[] = {path.data(), nullptr};
  const Fd null = TRY(sys::openat(sys::kHere, "/dev/null", O_RDWR));
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return sys_error("fork", delegate.path, errno);
  if (pid == 0) become(delegate.path.c_str(), argv.data(), environment, stdio == Stdio::none ? null.get() : -1, parent);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return sys_error("waitpid", delegate.path, errno);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string run_folder_of(const std::string& run_id) {
  return std::string(kRunBase) + "/" + run_id;
}

DelegatePlaces delegate_places(const ContainerState& state) {
  DelegatePlaces places;
  places.delegate = state.delegate;
  places.root = delegate_state(state.delegate);
  places.id = state.run_id;
  return places;
}

// One JSON object a line, warnings among them; what is none of that is the delegate's text.
std::string last_words(const std::string& log) {
  const auto text = sys::read_file(sys::kHere, log);
  if (!text) return text.error().message;
  std::string words;
  for (std::size_t start = 0; start < text->size();) {
    const std::size_t end = std::min(text->find('\n', start), text->size());
    const std::string line = text->substr(start, end - start);
    start = end + 1;
    if (line.empty()) continue;
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("msg") || !entry["msg"].is_string())
      words = line;
    else if (entry.value("level", "error") == "error")
      words = entry["msg"].get<std::string>();
  }
  return words;
}

}  // namespace benchsand
