// What `benchsand install` writes into the configuration of an engine. Texts only: everything else that stands in one is kept
// as it was written, and what was added can be taken out again to the byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oci/result.h"

namespace benchsand {

enum class EngineKind { docker, podman, containerd };
const char* to_text(EngineKind engine);

struct NamedRuntime {
  std::string name;  // `benchsand` or `benchsand-PROFILE`
  std::string path;  // its file has the same name: by that the runtime knows its profile
};

struct Registration {
  std::vector<NamedRuntime> runtimes;
  std::vector<std::string> speak_json;  // Podman: runtimes that already log as JSON
};

// What an engine takes as the name of a runtime, and a shell as a word.
bool is_runtime_name(std::string_view name);

// `text` is empty when there is no such file. The text as it has to be; the same text when nothing is to be done.
Result<std::string> add_runtimes(EngineKind engine, const std::string& text, const std::string& file,
                                 const Registration& registration);

// Without anything of benchsand; empty when nothing else is in it.
Result<std::string> remove_runtimes(EngineKind engine, const std::string& text, const std::string& file);

// The last `runtime_supports_json` of these texts (file and text, in the order in which Podman reads them), or Podman's own.
Result<std::vector<std::string>> podman_json_runtimes(const std::vector<std::pair<std::string, std::string>>& files);

// The lines that differ, marked - and +.
std::string changed_lines(const std::string& before, const std::string& after);

}  // namespace benchsand
