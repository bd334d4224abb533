#include "shim/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "shim/run_folder.h"

namespace benchsand {

namespace {

struct SpawnActions {
  posix_spawn_file_actions_t actions{};
  SpawnActions() { ::posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
};

struct SpawnAttributes {
  posix_spawnattr_t attributes{};
  SpawnAttributes() {
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
};

}  // namespace

Result<int> run_delegate(const DelegateBinary& delegate, const std::vector<std::string>& arguments, Stdio stdio) {
  std::vector<std::string> words = {delegate.facts.name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  char* environment[] = {path.data(), nullptr};
  SpawnActions actions;
  const SpawnAttributes attributes;
  if (stdio == Stdio::none)
    for (int fd = 0; fd < 3; ++fd) ::posix_spawn_file_actions_addopen(&actions.actions, fd, "/dev/null", O_RDWR, 0);
  pid_t pid = 0;
  const int failed =
      ::posix_spawn(&pid, delegate.path.c_str(), &actions.actions, &attributes.attributes, argv.data(), environment);
  if (failed != 0) return sys_error("posix_spawn", delegate.path, failed);
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
