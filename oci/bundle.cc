#include "oci/bundle.h"

#include <nlohmann/json.hpp>

#include "oci/walls.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::uint64_t kCpuPeriodUs = 100'000;

json rlimits(const Policy& policy) {
  json list = json::array();
  for (const auto& [type, value] : process_limits(policy))
    list.push_back({{"type", type}, {"soft", value}, {"hard", value}});
  return list;
}

// Without CAP_SYS_RESOURCE, which is not everywhere in the bounding set, and what is not in it cannot be given.
json every_capability() {
  json list = json::array();
  for (const char* name : {"CHOWN",           "DAC_OVERRIDE",
                           "DAC_READ_SEARCH", "FOWNER",
                           "FSETID",          "KILL",
                           "SETGID",          "SETUID",
                           "SETPCAP",         "NET_ADMIN",
                           "NET_RAW",         "IPC_LOCK",
                           "IPC_OWNER",       "NET_BIND_SERVICE",
                           "NET_BROADCAST",   "SYS_MODULE",
                           "SYS_RAWIO",       "SYS_CHROOT",
                           "SYS_PTRACE",      "SYS_PACCT",
                           "SYS_ADMIN",       "SYS_BOOT",
                           "SYS_NICE",        "SYS_TIME",
                           "SYS_TTY_CONFIG",  "MKNOD",
                           "LEASE",           "AUDIT_WRITE",
                           "AUDIT_CONTROL",   "SETFCAP",
                           "LINUX_IMMUTABLE", "MAC_OVERRIDE",
                           "MAC_ADMIN",       "SYSLOG",
                           "WAKE_ALARM",      "BLOCK_SUSPEND",
                           "AUDIT_READ"})
    list.push_back(std::string("CAP_") + name);
  return list;
}

json capabilities(const json& list) {
  return {{"bounding", list}, {"effective", list}, {"inheritable", list}, {"permitted", list}, {"ambient", list}};
}

json process(const Policy& policy, const BundlePlaces& places) {
  json result = {
      {"terminal", policy.terminal},
      {"user", {{"uid", policy.uid}, {"gid", policy.gid}}},
      {"args", policy.command},
      {"env", policy.env},
      {"cwd", policy.workdir},
      {"capabilities", capabilities(json::array())},
      {"noNewPrivileges", !is_down(policy, Relaxation::no_new_privs)},
      // When the host itself runs out of memory, the candidate goes before anything of the operator's.
      {"oomScoreAdj", 1000},
  };
  if (!places.limits_at_the_door) result["rlimits"] = rlimits(policy);
  if (is_down(policy, Relaxation::identity)) {
    result["user"] = {{"uid", 0}, {"gid", 0}};
    result["capabilities"] = capabilities(every_capability());
  }
  return result;
}

const char* access(const Policy& policy, Relaxation writable) {
  return is_down(policy, writable) ? "rw" : "ro";
}

// Read-only, unlike every engine's default: a writable /dev is a second scratch place outside the disk limit.
json devices(const Policy& policy, const BundlePlaces& places) {
  if (!places.devices.empty())
    return {{"destination", "/dev"},
            {"type", "bind"},
            {"source", places.devices},
            {"options", {"bind", access(policy, Relaxation::devices), "nosuid", "noexec", "rprivate"}}};
  return {{"destination", "/dev"},
          {"type", "tmpfs"},
          {"source", "tmpfs"},
          {"options", {"nosuid", "noexec", "ro", "mode=755", "size=64k"}}};
}

json mounts(const Policy& policy, const BundlePlaces& places) {
  json list = json::array({
      {{"destination", "/proc"},
       {"type", "proc"},
       {"source", "proc"},
       {"options", {"nosuid", "noexec", "nodev", access(policy, Relaxation::masks)}}},
      devices(policy, places),
  });
  // No `gid=5`: that group is none of the run's user namespace.
  if (policy.terminal)
    list.push_back({{"destination", "/dev/pts"},
                    {"type", "devpts"},
                    {"source", "devpts"},
                    {"options", {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}}});
  for (std::size_t i = 0; i < policy.inputs.size(); ++i)
    list.push_back({{"destination", policy.inputs[i].target},
                    {"type", "bind"},
                    {"source", places.inputs.empty() ? policy.inputs[i].source : places.inputs[i]},
                    {"options", {"bind", "ro", "nosuid", "nodev", "rprivate"}}});
  list.push_back({{"destination", policy.output},
                  {"type", "bind"},
                  {"source", places.output},
                  {"options", {"bind", "rw", "nosuid", "nodev", "rprivate"}}});
  return list;
}

// runc wants them beside the namespace's path; they are what the namespace has already, of which the kernel refuses a second.
json id_mappings(std::uint32_t candidate, const HostIds& host) {
  return {{{"containerID", 0}, {"hostID", host.root}, {"size", 1}},
          {{"containerID", candidate}, {"hostID", host.candidate}, {"size", 1}}};
}

json namespaces(const Policy& policy, const BundlePlaces& places) {
  json list = json::array();
  for (const std::string type : {"pid", "mount", "ipc", "uts", "network", "cgroup"})
    if (type != "pid" || !is_down(policy, Relaxation::pid_namespace)) list.push_back({{"type", type}});
  if (is_down(policy, Relaxation::network_namespace))
    for (json& entry : list)
      if (entry["type"] == "network") entry["path"] = places.network_namespace;
  if (!places.user_namespace.empty()) list.push_back({{"type", "user"}, {"path", places.user_namespace}});
  return list;
}

}  // namespace

std::vector<ProcessLimit> process_limits(const Policy& policy) {
  return {{"RLIMIT_NOFILE", policy.limits.open_files},
          // 1 and not 0: the kernel starts a core_pattern program even at 0, but not at 1.
          {"RLIMIT_CORE", 1},
          {"RLIMIT_CPU", cpu_backstop_seconds(policy)},
          {"RLIMIT_NICE", 0},
          {"RLIMIT_RTPRIO", 0}};
}

// The swap pin, by facts of kernel and delegate: `swap` is memory+swap in OCI. On v1 it becomes memsw.limit; on v2 both
// delegates turn swap == limit into memory.swap.max = 0 but ignore a failure, so the file is named once more in
// `unified`, where a failure is an error. Whatever is asked here, the wall is what the door reads back.
json resources_json(const Policy& policy, const HostFacts& host, const BundlePlaces& places) {
  const auto memory = static_cast<std::int64_t>(policy.limits.memory_bytes);
  json result = {
      {"devices", json::array({{{"allow", false}, {"access", "rwm"}}})},
      {"memory", {{"limit", memory}, {"swap", memory}}},
      {"pids", {{"limit", policy.limits.processes}}},
      {"cpu", {{"quota", policy.limits.cpus_milli * kCpuPeriodUs / 1000}, {"period", kCpuPeriodUs}}},
  };
  if (!policy.cpuset.empty()) result["cpu"]["cpus"] = policy.cpuset;
  if (host.cgroup == CgroupLayout::v2) {
    // One OOM kill ends the whole run, not a random child of it.
    result["unified"]["memory.oom.group"] = "1";
    if (places.swap_file_exists) result["unified"]["memory.swap.max"] = "0";
  }
  return result;
}

json bundle_json(const Policy& policy, const HostFacts& host, const BundlePlaces& places) {
  json config = {
      {"ociVersion", "1.0.0"},
      {"process", process(policy, places)},
      {"root", {{"path", places.rootfs}, {"readonly", !is_down(policy, Relaxation::rootfs)}}},
      {"hostname", "benchsand"},
      {"mounts", mounts(policy, places)},
      {"linux",
       {{"resources", resources_json(policy, host, places)},
        {"namespaces", namespaces(policy, places)},
        {"maskedPaths", policy.masked_paths},
        {"readonlyPaths", policy.readonly_paths},
        {"rootfsPropagation", "private"},
        {"seccomp", oci_seccomp_json(policy.seccomp, places.listener)}}},
  };
  if (!places.user_namespace.empty() && policy.host_ids && host.delegate_name == "runc") {
    config["linux"]["uidMappings"] = id_mappings(policy.uid, *policy.host_ids);
    config["linux"]["gidMappings"] = id_mappings(policy.gid, *policy.host_ids);
  }
  if (!places.cgroups_path.empty()) config["linux"]["cgroupsPath"] = places.cgroups_path;
  return config;
}

std::string render_bundle(const Policy& policy, const HostFacts& host, const BundlePlaces& places) {
  return bundle_json(policy, host, places).dump(2) + "\n";
}

}  // namespace benchsand
