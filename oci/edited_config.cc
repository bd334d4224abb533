#include "oci/admit.h"

namespace benchsand {

using nlohmann::json;

namespace {

// Of the engine's process, what is not benchsand's to decide; everything else of it that is known comes from the policy.
void lay_process(json& process, const json& ours) {
  for (const char* name : {"rlimits", "scheduler", "ioPriority", "execCPUAffinity", "commandLine"}) process.erase(name);
  for (const auto& [name, value] : ours.items()) process[name] = value;
}

void lay_linux(json& linux_part, const json& ours) {
  for (const char* name : {"uidMappings", "gidMappings", "devices", "netDevices", "sysctl", "intelRdt", "memoryPolicy",
                           "personality", "timeOffsets", "cgroupsPath"})
    linux_part.erase(name);
  for (const auto& [name, value] : ours.items()) linux_part[name] = value;
}

}  // namespace

std::string edited_config(const Admission& admission, const Policy& policy, const HostFacts& host,
                          const BundlePlaces& places) {
  const json ours = bundle_json(policy, host, places);
  json config = admission.document;
  for (const char* name : {"hooks", "domainname"}) config.erase(name);
  if (!config.contains("linux")) config["linux"] = json::object();
  for (const auto& [name, value] : ours.items()) {
    if (name == "process")
      lay_process(config["process"], value);
    else if (name == "linux")
      lay_linux(config["linux"], value);
    else
      config[name] = value;
  }
  return config.dump(2) + "\n";
}

}  // namespace benchsand
