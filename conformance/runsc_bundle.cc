#include "conformance/runsc_bundle.h"

#include <nlohmann/json.hpp>

#include "oci/strict_json.h"

namespace benchsand::conformance {

using nlohmann::json;

Result<std::string> runsc_config(const std::string& config, const std::string& cgroups_path) {
  json document = TRY(parse_strict_json(config, "config.json"));
  if (!document.is_object() || !document.contains("linux") || !document["linux"].is_object())
    return fault("make a bundle for runsc: its config.json has no linux");
  json& of_linux = document["linux"];
  of_linux.erase("seccomp");
  if (of_linux.contains("resources")) of_linux["resources"].erase("pids");
  of_linux["cgroupsPath"] = cgroups_path;
  return document.dump();
}

}  // namespace benchsand::conformance
