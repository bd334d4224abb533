#include "oci/install_podman.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "oci/toml_text.h"

namespace benchsand {

namespace {

constexpr const char* kHeader = "# Written by benchsand install podman, and removed by its --uninstall.\n";

// Podman's own, of versions 4 and 5 together: a name that an older one does not know does no harm.
constexpr const char* kDefault[] = {"crun", "runc", "kata", "runsc", "youki", "krun", "ocijail"};

Result<void> check_ours(const std::string& text, const std::string& file) {
  if (text.empty() || text.starts_with(kHeader)) return {};
  return usage("register with " + file +
               ": benchsand has not written that file; name one of its own, which Podman reads too, as "
               "/etc/containers/containers.conf.d/benchsand.conf");
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + nlohmann::json(name).dump();
  return "[" + text + "]";
}

}  // namespace

Result<std::string> podman_drop_in(const std::string& text, const std::string& file, const Registration& registration) {
  TRY_VOID(check_ours(text, file));
  std::vector<std::string> json = registration.speak_json;
  std::string runtimes;
  for (const auto& runtime : registration.runtimes) {
    if (std::find(json.begin(), json.end(), runtime.name) == json.end()) json.push_back(runtime.name);
    runtimes += runtime.name + " = " + list_text({runtime.path}) + "\n";
  }
  // A list takes the place of the one before it, so it has to be the whole one.
  return std::string(kHeader) + "[engine]\nruntime_supports_json = " + list_text(json) + "\n\n[engine.runtimes]\n" +
         runtimes;
}

Result<std::string> remove_podman_drop_in(const std::string& text, const std::string& file) {
  TRY_VOID(check_ours(text, file));
  return std::string();
}

Result<std::vector<std::string>> podman_json_runtimes(const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<std::string> names(std::begin(kDefault), std::end(kDefault));
  for (const auto& [file, text] : files)
    for (const auto& entry : TRY(read_toml(text, file)))
      if (entry.path == std::vector<std::string>{"engine", "runtime_supports_json"}) names = entry.strings;
  return names;
}

}  // namespace benchsand
