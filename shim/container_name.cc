#include "shim/container_name.h"

#include <fcntl.h>

#include <optional>
#include <vector>

#include "shim/sys.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestName = 255, kLargestFile = 4 << 20;

// As Docker and Podman allow them: safe in a message, and never a path.
bool is_name(const std::string& name) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  return !name.empty() && name.size() <= kLongestName && letters.find(name.front()) != std::string::npos &&
         name.find_first_not_of(letters + "_.-") == std::string::npos;
}

std::string text_at(const json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// DIR of "DIR/hosts", when DIR is the engine's folder of this container.
std::string folder_of(const json& config, const std::string& id) {
  if (!config.is_object() || !config.contains("mounts") || !config["mounts"].is_array()) return "";
  const std::string end = "/containers/" + id + "/hosts";
  for (const auto& mount : config["mounts"]) {
    const std::string source = text_at(mount, "source");
    if (text_at(mount, "destination") == "/etc/hosts" && source.ends_with(end))
      return source.substr(0, source.size() - std::string("/hosts").size());
  }
  return "";
}

std::optional<std::string> docker_name(const json& config, const std::string& id) {
  const std::string folder = folder_of(config, id);
  if (folder.empty()) return std::nullopt;
  const std::string path = folder + "/config.v2.json";
  const auto facts = sys::fstatat(sys::kHere, path, AT_SYMLINK_NOFOLLOW);
  if (!facts || !S_ISREG(facts->st_mode)) return std::nullopt;
  const auto text = sys::read_file(sys::kHere, path, kLargestFile);
  if (!text) return std::nullopt;
  const std::string name = text_at(json::parse(*text, nullptr, false), "Name");  // "/name"
  if (name.empty() || name.front() != '/' || !is_name(name.substr(1))) return std::nullopt;
  return name.substr(1);
}

std::vector<std::string> arguments_of(pid_t process) {
  std::vector<std::string> arguments;
  const auto text = sys::read_file(sys::kHere, "/proc/" + std::to_string(process) + "/cmdline");
  if (!text) return arguments;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\0', at), text->size());
    arguments.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  return arguments;
}

// conmon -c ID … -n NAME …
std::optional<std::string> podman_name(const std::string& id, pid_t parent) {
  const auto arguments = arguments_of(parent);
  if (arguments.empty()) return std::nullopt;
  const std::string& program = arguments.front();
  if (program.substr(program.find_last_of('/') + 1) != "conmon") return std::nullopt;
  std::optional<std::string> name;
  bool of_this_one = false;
  for (std::size_t i = 1; i + 1 < arguments.size(); ++i) {
    if ((arguments[i] == "-c" || arguments[i] == "--cid") && arguments[i + 1] == id) of_this_one = true;
    if ((arguments[i] == "-n" || arguments[i] == "--name") && !name && is_name(arguments[i + 1]))
      name = arguments[i + 1];
  }
  return of_this_one ? name : std::nullopt;
}

}  // namespace

std::string container_name(const json& config, const std::string& id, pid_t parent) {
  if (const auto name = docker_name(config, id)) return *name;
  if (const auto name = podman_name(id, parent)) return *name;
  return id;
}

}  // namespace benchsand
