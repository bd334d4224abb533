#include "oci/install.h"

#include <algorithm>
#include <sstream>

#include "oci/install_containerd.h"
#include "oci/install_docker.h"
#include "oci/install_podman.h"

namespace benchsand {

const char* to_text(EngineKind engine) {
  switch (engine) {
    case EngineKind::docker:
      return "docker";
    case EngineKind::podman:
      return "podman";
    case EngineKind::containerd:
      return "containerd";
  }
  return "";
}

bool is_runtime_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 64 && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || c == '-' || c == '_'; });
}

Result<std::string> add_runtimes(EngineKind engine, const std::string& text, const std::string& file,
                                 const Registration& registration) {
  switch (engine) {
    case EngineKind::docker:
      return add_to_daemon_json(text, file, registration.runtimes);
    case EngineKind::podman:
      return podman_drop_in(text, file, registration);
    case EngineKind::containerd:
      return add_to_containerd(text, file, registration.runtimes);
  }
  return fault("register with an unknown engine");
}

Result<std::string> remove_runtimes(EngineKind engine, const std::string& text, const std::string& file) {
  switch (engine) {
    case EngineKind::docker:
      return remove_from_daemon_json(text, file);
    case EngineKind::podman:
      return remove_podman_drop_in(text, file);
    case EngineKind::containerd:
      return remove_from_containerd(text, file);
  }
  return fault("deregister from an unknown engine");
}

std::string changed_lines(const std::string& before, const std::string& after) {
  const auto lines_of = [](const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  };
  const auto old_lines = lines_of(before), new_lines = lines_of(after);
  const std::size_t most = std::min(old_lines.size(), new_lines.size());
  std::size_t head = 0, tail = 0;
  while (head < most && old_lines[head] == new_lines[head]) ++head;
  while (tail < most - head && old_lines[old_lines.size() - 1 - tail] == new_lines[new_lines.size() - 1 - tail]) ++tail;
  std::string text;
  for (std::size_t i = head; i < old_lines.size() - tail; ++i) text += "-" + old_lines[i] + "\n";
  for (std::size_t i = head; i < new_lines.size() - tail; ++i) text += "+" + new_lines[i] + "\n";
  return text;
}

}  // namespace benchsand
