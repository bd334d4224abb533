// Any config.json of an engine. What is admitted must come out behind every wall that config.json can say.
#include "json_mutator.h"
#include "oci/runtime_error.h"
#include "support.h"

using namespace benchsand;
using fuzz::must;
using nlohmann::json;

namespace {

void check_process(const json& process) {
  must(process.at("noNewPrivileges") == true);
  must(process.at("user").at("uid") == fuzz::strict().uid && process.at("user").at("gid") == fuzz::strict().gid);
  for (const auto& [set, capabilities] : process.at("capabilities").items()) must(capabilities.empty());
}

bool has(const json& mount, const char* option) {
  const auto& options = mount.at("options");
  return std::find(options.begin(), options.end(), option) != options.end();
}

// Nothing of the host's is writable, and what it lends is not its own either.
void check_mounts(const json& config, const Policy& policy) {
  for (const auto& mount : config.at("mounts")) {
    const std::string target = mount.at("destination"), source = mount.value("source", "");
    const bool from_the_host = source.starts_with("/") && !source.starts_with("/run/own/");
    if (from_the_host) must(has(mount, "ro"));
    if (target == policy.output) must(source == "/run/own/output" && has(mount, "nosuid") && has(mount, "nodev"));
    must(!has(mount, "suid") && !has(mount, "shared") && !has(mount, "rshared"));
  }
}

void check_linux(const json& linux_part) {
  std::string kinds;
  for (const auto& space : linux_part.at("namespaces")) {
    const std::string kind = space.at("type");
    kinds += kind + " ";
    must(!space.contains("path") || kind == "user");
  }
  for (const char* kind : {"network ", "pid ", "ipc ", "uts ", "mount ", "cgroup "})
    must(kinds.find(kind) != std::string::npos);
  must(linux_part.at("cgroupsPath") == "/benchsand/r1/ct");
  must(linux_part.at("seccomp").at("defaultAction") != "SCMP_ACT_ALLOW");
  for (const char* none : {"netDevices", "sysctl", "devices", "intelRdt", "timeOffsets", "personality"})
    must(!linux_part.contains(none) || linux_part.at(none).empty());
  const auto& resources = linux_part.at("resources");
  must(resources.at("memory").at("limit").get<std::uint64_t>() <= fuzz::strict().limits.at("memory").maximum);
  must(resources.at("pids").at("limit").get<std::uint64_t>() <= fuzz::strict().limits.at("processes").maximum);
}

void check_config(const json& config, const Policy& policy) {
  check_process(config.at("process"));
  check_mounts(config, policy);
  check_linux(config.at("linux"));
  must(config.at("root").at("path") == "/run/own/rootfs" && config.at("root").at("readonly") == true);
  must(!config.contains("hooks") || config.at("hooks").empty());
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return json_mutator::mutate(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const AdmitContext context{"/run/containerd/b", "/run/docker/runtime-runc/moby", fuzz::strict()};
  auto admission = admit(text, context);
  if (!admission) {
    must(admission.error().kind == Error::Kind::usage && !admission.error().message.empty());
    return 0;
  }
  const auto policy = decide_admitted(*admission, context, std::string(64, 'a'), fuzz::host());
  must(policy.has_value() == admission->refusals.empty());
  if (policy) {
    BundlePlaces places = fuzz::places();
    for (std::size_t i = 0; i < policy->inputs.size(); ++i) places.inputs.push_back("/run/own/" + std::to_string(i));
    check_config(json::parse(edited_config(*admission, *policy, fuzz::host(), places)), *policy);
  } else {
    const std::string line = refusal_text(admission->refusals);
    must(line.find('\n') == std::string::npos && !has_caller_phrase(neutral_wording(line)));
  }
  return 0;
}
