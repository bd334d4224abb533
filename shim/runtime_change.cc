// The verbs that change a running container: exec and update. What they may do is decided by the monitor, which has the policy.
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "oci/runtime_error.h"
#include "shim/control.h"
#include "shim/run_folder.h"
#include "shim/runtime_verbs.h"
#include "shim/subprocess.h"

namespace benchsand {

namespace {

using nlohmann::json;

constexpr std::uint64_t kAnswerWithinUs = 15'000'000;
constexpr std::size_t kLargestDocument = 128 * 1024;

// A document for the delegate, in the run's folder, where only root comes; gone with its owner.
class PrivateFile {
 public:
  static Result<PrivateFile> create(const std::string& folder, const std::string& kind, const std::string& text) {
    PrivateFile file;
    file.path_ = folder + "/" + kind + "-" + TRY(sys::random_hex(8)) + ".json";
    TRY_VOID(sys::create_file(sys::kHere, file.path_, text, 0600));
    return file;
  }
  PrivateFile(PrivateFile&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  PrivateFile& operator=(PrivateFile&&) = delete;
  ~PrivateFile() {
    if (!path_.empty())
      static_cast<void>(sys::unlinkat(sys::kHere, path_, 0));  // teardown removes the folder in any case
  }
  const std::string& path() const { return path_; }

 private:
  PrivateFile() = default;
  std::string path_;
};

struct Conversation {
  ContainerState state;
  ControlConnection monitor;
};

Result<Conversation> talk_about(const RuntimeCall& call) {
  const std::string what = runtime_verb_text(call.verb) + " in container " + call.id + ": ";
  auto state = TRY(require_container(call.root, call.id));
  const auto status = TRY(container_status(state));
  if (status == ContainerStatus::stopped) return usage(container_not_running(call.id));
  if (status == ContainerStatus::paused && !call.ignore_paused) return usage(what + "it is paused; resume it first");
  auto monitor = TRY(ControlConnection::to_monitor(run_folder_of(state.run_id)));
  if (!monitor) return usage(container_not_running(call.id));
  return Conversation{std::move(state), std::move(*monitor)};
}

Result<json> asked(const Conversation& conversation, const json& message) {
  TRY_VOID(conversation.monitor.send(message));
  json answer = TRY(conversation.monitor.receive(sys::monotonic_us() + kAnswerWithinUs));
  if (answer.is_null()) return usage(container_not_running(conversation.state.id));
  if (answer.contains("error")) return usage(answer.at("error").get<std::string>());
  return answer;
}

// Without a file the flags are the process, as runc and crun take them from people.
Result<json> process_of(const RuntimeCall& call) {
  if (!call.process_file.empty())
    return json{{"do", "exec"}, {"process", TRY(sys::read_file(sys::kHere, call.process_file, kLargestDocument))}};
  if (call.command.empty()) return usage("exec in container " + call.id + ": no program was given");
  json process = {{"terminal", call.tty},
                  {"user", {{"uid", 0}, {"gid", 0}}},
                  {"args", call.command},
                  {"cwd", call.cwd.empty() ? "/" : call.cwd}};
  return json{{"do", "exec"}, {"process", process.dump()}, {"environment", call.environment}};
}

Result<int> exec_in_container(const RuntimeCall& call) {
  const auto conversation = TRY(talk_about(call));
  const ContainerState& state = conversation.state;
  const json answer = TRY(asked(conversation, TRY(process_of(call))));
  const std::string folder = run_folder_of(state.run_id);
  const auto process = TRY(PrivateFile::create(folder, "exec", answer.at("process").get<std::string>()));
  const auto log = TRY(PrivateFile::create(folder, "exec-log", ""));
  DelegatePlaces places = delegate_places(state);
  places.process_file = process.path();
  places.pid_file = call.pid_file;
  places.console_socket = call.console_socket;
  places.log = log.path();
  const auto delegate = TRY(find_delegate(state.delegate, kDelegateCache));
  const int exit = TRY(run_delegate(delegate, delegate_arguments(call, places), Stdio::inherited));
  const std::string words = last_words(log.path());
  // Of a program that ran, the status is its own; the delegate's errors are in its log.
  if (!words.empty() && exit != 0) return fault(delegate_words(words));
  return exit;
}

Result<std::string> standard_input_text() {
  std::string text;
  char bytes[4096];
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read", "standard input", errno);
    if (n == 0) return text;
    text.append(bytes, static_cast<std::size_t>(n));
    if (text.size() > kLargestDocument) return usage("read the resources from standard input: they are too long");
  }
}

Result<std::int64_t> number_of(const std::string& name, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return usage("update: --" + name + " '" + text + "' is not a whole number");
  return number;
}

// The flags of people as the document that engines send.
Result<std::string> resources_of_flags(const std::map<std::string, std::string>& limits) {
  struct Place {
    const char *flag, *pointer;
  };
  constexpr Place kNumbers[] = {{"memory", "/memory/limit"},         {"memory-swap", "/memory/swap"},
                                {"pids-limit", "/pids/limit"},       {"cpu-quota", "/cpu/quota"},
                                {"cpu-period", "/cpu/period"},       {"cpu-share", "/cpu/shares"},
                                {"blkio-weight", "/blockIO/weight"}, {"memory-reservation", "/memory/reservation"}};
  constexpr Place kTexts[] = {{"cpuset-cpus", "/cpu/cpus"}, {"cpuset-mems", "/cpu/mems"}};
  json resources = json::object();
  std::size_t known = 0;
  for (const auto& place : kNumbers)
    if (const auto found = limits.find(place.flag); found != limits.end() && ++known > 0)
      resources[json::json_pointer(place.pointer)] = TRY(number_of(place.flag, found->second));
  for (const auto& place : kTexts)
    if (const auto found = limits.find(place.flag); found != limits.end() && ++known > 0)
      resources[json::json_pointer(place.pointer)] = found->second;
  if (known != limits.size())
    return usage(
        "update: of the limits, benchsand knows memory, swap, tasks, CPU quota and the cpuset; leave out the rest");
  return resources.dump();
}

Result<std::string> resources_of(const RuntimeCall& call) {
  if (call.resources_file == "-") return standard_input_text();
  if (!call.resources_file.empty()) return sys::read_file(sys::kHere, call.resources_file, kLargestDocument);
  return resources_of_flags(call.limits);
}

// In two steps, so that the monitor compares the end with limits that the delegate has really set.
Result<void> update_container_limits(const RuntimeCall& call) {
  const auto conversation = TRY(talk_about(call));
  const ContainerState& state = conversation.state;
  const json answer = TRY(asked(conversation, {{"do", "update"}, {"resources", TRY(resources_of(call))}}));
  const std::string folder = run_folder_of(state.run_id);
  const auto resources = TRY(PrivateFile::create(folder, "update", answer.at("resources").get<std::string>()));
  const auto log = TRY(PrivateFile::create(folder, "update-log", ""));
  DelegatePlaces places = delegate_places(state);
  places.resources_file = resources.path();
  places.log = log.path();
  const auto delegate = TRY(find_delegate(state.delegate, kDelegateCache));
  const int exit = TRY(run_delegate(delegate, delegate_arguments(call, places), Stdio::none));
  const std::string words = last_words(log.path());
  TRY(asked(conversation, {{"do", "updated"}, {"done", exit == 0}}));
  if (exit != 0) return fault("update container " + call.id + " with " + state.delegate + ": " + words);
  return {};
}

}  // namespace

Result<int> verb_exec(const RuntimeContext&, const RuntimeCall& call) {
  return exec_in_container(call);
}

Result<int> verb_update(const RuntimeContext&, const RuntimeCall& call) {
  TRY_VOID(update_container_limits(call));
  return 0;
}

}  // namespace benchsand
