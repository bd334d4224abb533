#include "oci/api_body.h"

#include "oci/bundle.h"
#include "oci/seccomp.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::uint64_t kCpuPeriodUs = 100'000;

std::uint64_t cpu_quota_us(const Policy& policy) {
  return policy.limits.cpus_milli * kCpuPeriodUs / 1000;
}

std::string user_of(const Policy& policy) {
  return std::to_string(policy.uid) + ":" + std::to_string(policy.gid);
}

// "RLIMIT_NOFILE" is "nofile" to an engine.
std::string short_name(const std::string& limit) {
  std::string name = limit.substr(std::string("RLIMIT_").size());
  for (char& c : name) c = static_cast<char>(c - 'A' + 'a');
  return name;
}

json docker_limits(const Policy& policy) {
  json list = json::array();
  for (const auto& [name, value] : process_limits(policy))
    list.push_back({{"Name", short_name(name)}, {"Soft", value}, {"Hard", value}});
  return list;
}

json podman_limits(const Policy& policy) {
  json list = json::array();
  for (const auto& [name, value] : process_limits(policy))
    list.push_back({{"type", short_name(name)}, {"soft", value}, {"hard", value}});  // "RLIMIT_" it writes itself
  return list;
}

json docker_mounts(const Policy& policy, const BodyPlaces::Plain& plain) {
  json list = json::array();
  // What they are mounted from is read-only, nosuid and nodev already. Docker has no words for the last two, and a runtime that is
  // asked to make a bind mount read-only drops what it is not asked to keep.
  for (const auto& [source, target] : plain.inputs)
    list.push_back({{"Type", "bind"}, {"Source", source}, {"Target", target}, {"ReadOnly", false}});
  list.push_back({{"Type", "bind"}, {"Source", plain.output}, {"Target", policy.output}, {"ReadOnly", false}});
  return list;
}

json podman_mounts(const Policy& policy, const BodyPlaces::Plain& plain) {
  json list = json::array();
  for (const auto& [source, target] : plain.inputs)
    list.push_back({{"type", "bind"},
                    {"source", source},
                    {"destination", target},
                    {"options",
                     {"bind", "ro", "nosuid", target == "/dev" ? "dev" : "nodev", target == "/dev" ? "noexec" : "exec",
                      "rprivate"}}});
  list.push_back({{"type", "bind"},
                  {"source", plain.output},
                  {"destination", policy.output},
                  {"options", {"bind", "rw", "nosuid", "nodev", "rprivate"}}});
  return list;
}

json docker_host_config(const Policy& policy, const BodyPlaces& places) {
  const json masked(policy.masked_paths), readonly(policy.readonly_paths);
  json host = {
      {"NetworkMode", "none"},
      {"Memory", policy.limits.memory_bytes},
      {"MemorySwap", policy.limits.memory_bytes},  // memory and swap together
      {"PidsLimit", policy.limits.processes},
      {"CpuPeriod", kCpuPeriodUs},
      {"CpuQuota", cpu_quota_us(policy)},
      {"CpusetCpus", policy.cpuset},
      {"ReadonlyRootfs", true},
      {"CapDrop", {"ALL"}},
      {"SecurityOpt", {"no-new-privileges"}},
      {"IpcMode", "none"},
      {"Ulimits", docker_limits(policy)},
      {"MaskedPaths", masked},
      {"ReadonlyPaths", readonly},
      {"OomScoreAdj", 1000},
      {"LogConfig", {{"Type", "none"}}},
      {"RestartPolicy", {{"Name", "no"}}},
      {"AutoRemove", false},
  };
  if (!places.runtime.empty()) host["Runtime"] = places.runtime;
  if (!places.plain) return host;
  host["CgroupParent"] = places.plain->cgroup_parent;
  host["CgroupnsMode"] = "private";
  host["SecurityOpt"].push_back("seccomp=" + oci_seccomp_json(policy.seccomp, "").dump());
  host["Mounts"] = docker_mounts(policy, *places.plain);
  return host;
}

json docker_body(const Policy& policy, const BodyPlaces& places) {
  return {
      {"Image", places.image},
      {"Entrypoint", json::array()},  // the image's is not used
      {"Cmd", places.plain ? places.plain->command : policy.command},
      {"Env", policy.env},
      {"WorkingDir", policy.workdir},
      {"User", user_of(policy)},
      {"Hostname", "benchsand"},
      {"Tty", false},
      {"OpenStdin", false},
      {"StdinOnce", false},
      {"NetworkDisabled", true},
      {"Healthcheck", {{"Test", {"NONE"}}}},  // the image's would be an exec
      {"Labels", places.labels},
      {"HostConfig", docker_host_config(policy, places)},
  };
}

json environment(const std::vector<std::string>& list) {
  json object = json::object();
  for (const auto& variable : list) {
    const auto equals = variable.find('=');
    object[variable.substr(0, equals)] = equals == std::string::npos ? "" : variable.substr(equals + 1);
  }
  return object;
}

json podman_resources(const Policy& policy) {
  json result = {{"memory", {{"limit", policy.limits.memory_bytes}, {"swap", policy.limits.memory_bytes}}},
                 {"pids", {{"limit", policy.limits.processes}}},
                 {"cpu", {{"period", kCpuPeriodUs}, {"quota", cpu_quota_us(policy)}}}};
  if (!policy.cpuset.empty()) result["cpu"]["cpus"] = policy.cpuset;
  return result;
}

json podman_body(const Policy& policy, const BodyPlaces& places) {
  json body = {
      {"name", places.name},
      {"image", places.image},
      {"entrypoint", json::array()},
      {"command", places.plain ? places.plain->command : policy.command},
      {"env", environment(policy.env)},
      {"env_host", false},
      {"httpproxy", false},
      {"work_dir", policy.workdir},
      {"create_working_dir", true},
      {"manage_password", false},  // no files of the host over the image's
      {"user", user_of(policy)},
      {"hostname", "benchsand"},
      {"terminal", false},
      {"stdin", false},
      {"netns", {{"nsmode", "none"}}},
      {"ipcns", {{"nsmode", "none"}}},
      {"cgroupns", {{"nsmode", "private"}}},
      {"systemd", "false"},
      {"resource_limits", podman_resources(policy)},
      {"r_limits", podman_limits(policy)},
      {"read_only_filesystem", true},
      {"cap_drop", {"ALL"}},
      {"no_new_privileges", true},
      {"mask", policy.masked_paths},
      {"unmask", policy.masked_paths},  // by itself, or it would mask what stands in both lists twice
      {"oom_score_adj", 1000},
      {"image_volume_mode", "ignore"},
      {"healthconfig", {{"Test", {"NONE"}}}},
      {"log_configuration", {{"driver", "none"}}},
      {"restart_policy", "no"},
      {"remove", false},
      {"labels", places.labels},
  };
  if (!places.runtime.empty()) body["oci_runtime"] = places.runtime;
  if (!places.plain) return body;
  body["cgroup_parent"] = places.plain->cgroup_parent;
  const std::uint64_t most = places.plain->user_processes;
  body["r_limits"].push_back({{"type", "nproc"}, {"soft", most}, {"hard", most}});
  body["seccomp_profile_path"] = places.plain->seccomp_file;
  body["mounts"] = podman_mounts(policy, *places.plain);
  return body;
}

constexpr const char* kOrder = "[the order]";

}  // namespace

json create_body(ApiKind kind, const Policy& policy, const BodyPlaces& places) {
  return kind == ApiKind::docker ? docker_body(policy, places) : podman_body(policy, places);
}

const std::vector<FieldPlace>& field_places() {
  constexpr const char* kMonitor = "[enforced by benchsand]";
  static const std::vector<FieldPlace> places{
      {"command", "/process/args", "/Cmd", "/command"},
      {"env", "/process/env", "/Env", "/env"},
      {"workdir", "/process/cwd", "/WorkingDir", "/work_dir"},
      {"rootfs", "/root/path", "/Image", "/image"},
      {"image", "/root/path", "/Image", "/image"},
      {"stdin", kMonitor, kOrder, kOrder},
      {"inputs", "/mounts", "/HostConfig/Mounts", "/mounts"},
      {"output", "/mounts", "/HostConfig/Mounts", "/mounts"},
      {"limits.cpu_time_us", "/process/rlimits", "/HostConfig/Ulimits", "/r_limits"},
      {"limits.wall_time_us", kMonitor, kOrder, kOrder},
      {"limits.memory_bytes", "/linux/resources/memory/limit", "/HostConfig/Memory", "/resource_limits/memory/limit"},
      {"limits.processes", "/linux/resources/pids/limit", "/HostConfig/PidsLimit", "/resource_limits/pids/limit"},
      {"limits.disk_bytes", kMonitor, kOrder, kOrder},
      {"limits.files", kMonitor, kOrder, kOrder},
      {"limits.stdout_bytes", kMonitor, kOrder, kOrder},
      {"limits.stderr_bytes", kMonitor, kOrder, kOrder},
      {"limits.open_files", "/process/rlimits", "/HostConfig/Ulimits", "/r_limits"},
      {"limits.cpus_milli", "/linux/resources/cpu/quota", "/HostConfig/CpuQuota", "/resource_limits/cpu/quota"},
      {"stdio_total_bytes", kMonitor, kOrder, kOrder},
      {"collect", kMonitor, kOrder, kOrder},
      {"uid", "/process/user/uid", "/User", "/user"},
      {"gid", "/process/user/gid", "/User", "/user"},
      {"masked_paths", "/linux/maskedPaths", "/HostConfig/MaskedPaths", "/mask"},
      {"readonly_paths", "/linux/readonlyPaths", "/HostConfig/ReadonlyPaths", kOrder},
      {"filter_proof", kMonitor, kOrder, kOrder},
      {"refusals", kMonitor, kOrder, kOrder},
      {"rootfs_mount", kMonitor, kOrder, kOrder},
      {"egress_counters", kMonitor, kOrder, kOrder},
      {"user_namespace", "/linux/namespaces", kOrder, kOrder},
      {"exec", kMonitor, kOrder, kOrder},
      {"without_runtime", kMonitor, kMonitor, kMonitor},
      {"plain", kMonitor, "/HostConfig/CgroupParent", "/cgroup_parent"},
      {"terminal", "/process/terminal", "/Tty", "/terminal"},
      {"cpuset", "/linux/resources/cpu/cpus", "/HostConfig/CpusetCpus", "/resource_limits/cpu/cpus"},
      {"seccomp", "/linux/seccomp", "/HostConfig/SecurityOpt", "[a file: seccomp_profile_path]"},
      {"timeline_us", kMonitor, kOrder, kOrder},
      {"relaxations", kMonitor, kOrder, kOrder},
  };
  return places;
}

std::string field_places_page() {
  std::string page = "| field of the policy | `config.json` | Docker's body | Podman's body |\n|---|---|---|---|\n";
  const auto cell = [](const std::string& place) {
    return place.starts_with('[') ? place.substr(1, place.size() - 2) : "`" + place + "`";
  };
  for (const auto& place : field_places())
    page += "| `" + std::string(place.field) + "` | " + cell(place.config) + " | " + cell(place.docker) + " | " +
            cell(place.podman) + " |\n";
  return page;
}

}  // namespace benchsand
