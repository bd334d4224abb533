#include "oci/walls.h"

#include <algorithm>

#include "oci/wall_builder.h"
#include "oci/without_runtime.h"

namespace benchsand {

namespace {

// The kernel keeps memory limits and tmpfs sizes in pages.
constexpr std::uint64_t kPage = 4096;
std::uint64_t pages_down(std::uint64_t bytes) {
  return bytes / kPage * kPage;
}
std::uint64_t pages_up(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

constexpr const char* kNoIdsTaken = "host ids that were taken";  // never observed: without them the walls do not hold

// The lines of uid_map or gid_map, without the padding of their columns.
std::string id_map(const Policy& policy, std::uint32_t candidate) {
  if (!policy.host_ids) return kNoIdsTaken;
  return "0 " + std::to_string(policy.host_ids->root) + " 1, " + std::to_string(candidate) + " " +
         std::to_string(policy.host_ids->candidate) + " 1";
}

std::string ids(std::uint32_t id) {
  const std::string one = std::to_string(id);
  return one + " " + one + " " + one + " " + one;  // real, effective, saved, file system
}

// As the host sees what is `inside` in the candidate's user namespace.
std::string host_ids(const Policy& policy, std::uint32_t inside) {
  if (policy.user_namespace == UserNamespace::host) return ids(inside);
  return policy.host_ids ? ids(policy.host_ids->candidate) : kNoIdsTaken;
}

// Which attempts can get as far as their BPF program when a wall before it was taken down for a test.
bool can_reach(const Policy& policy, EgressCounter counter) {
  const bool filter = !is_down(policy, Relaxation::seccomp_network) && !is_down(policy, Relaxation::seccomp);
  const bool deny = !is_down(policy, Relaxation::bpf_deny) && has(policy.egress_counters, EgressCounter::sockets);
  switch (counter) {
    case EgressCounter::sockets:
      return !filter;
    case EgressCounter::connects:
      return !filter && !deny;
    case EgressCounter::packets:
      return false;  // there is no route
  }
  return false;
}

// An attempt that BPF saw is one that the filter should have refused before, even where BPF refused it then.
void egress_counters(const Policy& policy, WallBuilder& wall) {
  for (const auto& [counter, name] : kEgressCounts) {
    if (!has(policy.egress_counters, counter)) continue;
    if (can_reach(policy, counter))
      wall.spent().counted(name);
    else
      wall.spent().equals(name, std::uint64_t{0});
  }
}

void network(const Policy& policy, const HostFacts&, WallBuilder wall) {
  const std::string programs = hooks_of(policy.egress_counters);
  wall.at_the_door()
      .counted("host_namespace")
      .differs_from("namespace", "network.host_namespace")
      .equals("links", "lo")
      .equals("routes", "none")
      .equals("descriptors", "none")
      .equals("bpf", programs);
  if (is_down(policy, Relaxation::seccomp_network))
    wall.at_the_door().named("open_families");
  else
    wall.at_the_door().equals("open_families", "none");
  wall.at_the_end().equals("watch", "nothing appeared");
  wall.at_the_end().equals("links.end", "lo").equals("routes.end", "none").equals("bpf.end", programs);
  egress_counters(policy, wall);
  wall.spent().equals("egress_bytes", std::uint64_t{0}).counted("ipv4_no_route").counted_or("ipv6_no_route", "no IPv6");
  wall.spent().counted("refused_sockets");
}

void mounts(const Policy&, const HostFacts&, WallBuilder wall) {
  wall.at_the_door().equals("differences", "none").equals("unmasked", "none");
  wall.at_the_door().named("inputs_made").same_as("inputs", "mounts.inputs_made");
  wall.at_the_door().named("workdir_wanted").same_as("workdir", "mounts.workdir_wanted");
  wall.at_the_end().equals("differences.end", "none");
}

void rootfs(const Policy& policy, const HostFacts&, WallBuilder wall) {
  wall.at_the_door().named("source_identity").same_as("identity", "rootfs.source_identity");
  std::vector<std::string> targets = {policy.output};
  if (policy.terminal) targets.insert(targets.end(), {"/dev/console", "/dev/pts"});
  if (policy.plain && !policy.without_runtime.empty()) targets.push_back("/proc");
  std::sort(targets.begin(), targets.end());
  std::string writable;
  for (const auto& target : targets) writable += (writable.empty() ? "" : " ") + target;
  wall.at_the_door().equals("writable_mounts", writable);
  wall.at_the_end().equals("writable_mounts.end", writable);
}

void output(const Policy& policy, const HostFacts&, WallBuilder wall) {
  const std::uint64_t bytes = pages_up(policy.limits.disk_bytes);
  wall.at_the_door()
      .named("source_identity")
      .same_as("identity", "output.source_identity")
      .equals("bytes", bytes)
      .equals("inodes", policy.limits.files)
      .counted_or("device_writes", kNotOnThisHost);
  // What was written before the door was the delegate's doing.
  wall.at_the_end().same_as("device_writes.end", "output.device_writes");
  wall.at_the_end().equals("bytes.end", bytes).equals("inodes.end", policy.limits.files);
  wall.spent().at_most("bytes_used", bytes).at_most("inodes_used", policy.limits.files);
}

void memory(const Policy& policy, const HostFacts& host, WallBuilder wall) {
  const std::uint64_t limit = pages_down(policy.limits.memory_bytes);
  // v1 counts memory and swap together (memsw), v2 counts swap alone.
  const std::uint64_t swap = host.cgroup == CgroupLayout::v2 ? 0 : limit;
  wall.at_the_door().equals("limit", limit).equals("swap", swap);
  if (host.cgroup == CgroupLayout::v2) wall.at_the_door().equals("oom_group", std::uint64_t{1});
  wall.at_the_end().equals("limit.end", limit).equals("swap.end", swap);
  if (host.cgroup == CgroupLayout::v2) wall.at_the_end().equals("oom_group.end", std::uint64_t{1});
  wall.spent().at_most_where_counted("peak", limit).at_most_where_counted("swap_peak", swap).counted("oom_kills");
}

void processes(const Policy& policy, const HostFacts&, WallBuilder wall) {
  wall.at_the_door()
      .equals("limit", policy.limits.processes)
      .equals("at_door", std::uint64_t{1})
      .counted_or("peak_at_door", kNotInThisKernel);
  wall.at_the_end().equals("limit.end", policy.limits.processes);
  // runc's own threads were in the cgroup before its limit was set.
  wall.spent().at_most_or("peak", policy.limits.processes, "processes.peak_at_door").counted("refused");
  wall.at_the_end().equals("outside", "none");
  wall.spent().counted("tasks_seen");
}

void cpu_time(const Policy& policy, const HostFacts&, WallBuilder wall) {
  const std::string backstop = std::to_string(cpu_backstop_seconds(policy));
  wall.at_the_door()
      .equals("cpus_milli", policy.limits.cpus_milli)
      .equals("backstop", backstop + "/" + backstop)
      .counted("usage_us");
  wall.at_the_end().equals("cpus_milli.end", policy.limits.cpus_milli).at_least("usage_us.end", "cpu-time.usage_us");
  wall.spent().difference_of("used_us", "cpu-time.usage_us.end", "cpu-time.usage_us");
  wall.spent().at_most("overshoot_us", kLatestEnforcementUs).counted("throttled_periods").counted("throttled_us");
  if (policy.cpuset.empty())
    wall.at_the_door().processors_or("cpuset", kNoCpuset);
  else
    wall.at_the_door().equals("cpuset", policy.cpuset);
  wall.at_the_end().same_as("cpuset.end", "cpu-time.cpuset");
}

void wall_time(const Policy& policy, const HostFacts&, WallBuilder wall) {
  const std::uint64_t limit = policy.limits.wall_time_us;
  // Some of it has passed since the timer was set; a timer that is not armed reads 0.
  wall.at_the_door().between("armed_us", limit / 2 + 1, limit);
  wall.spent().counted("used_us").at_most("overshoot_us", kLatestEnforcementUs);
}

void stdio(const Policy& policy, const HostFacts&, WallBuilder wall) {
  if (policy.terminal) {
    // Made by the delegate inside, so there is nothing to compare with but its name in the run's own devpts.
    for (const char* name : {"stdin", "stdout", "stderr"})
      wall.at_the_door().either(name, "/dev/pts/0", "/dev/console");
    wall.spent().equals("stdout_bytes", kTerminal).equals("stderr_bytes", kTerminal);
    return;
  }
  for (const char* name : {"stdin", "stdout", "stderr"})
    wall.at_the_door().named(std::string(name) + "_made").same_as(name, std::string("stdio.") + name + "_made");
  wall.spent().counted("stdout_bytes").counted("stderr_bytes");
}

void privileges(const Policy& policy, const HostFacts&, WallBuilder wall) {
  const std::string files = std::to_string(policy.limits.open_files);
  // Docker puts a user into its own group once more (CVE-2022-36109), which gives it nothing.
  if (policy.plain)
    wall.at_the_door().either("groups", "none", std::to_string(policy.gid));
  else
    wall.at_the_door().equals("groups", "none");
  wall.at_the_door()
      .equals("uid", host_ids(policy, policy.uid))
      .equals("gid", host_ids(policy, policy.gid))
      .equals("capabilities", "none")
      .equals("no_new_privs", std::uint64_t{1})
      .equals("descriptors", "0 1 2")
      .equals("devices", policy.terminal ? kAllowedDevicesOfTerminal : kAllowedDevices)
      .either("limits_set_by", "the delegate", "benchsand")
      .equals("open_files", files + "/" + files)
      .equals("core", "1/1")
      .equals("oom_score_adj", std::uint64_t{1000});
  wall.at_the_end().equals("tasks", "none").equals("exec", "none");
}

void syscalls(const Policy& policy, const HostFacts&, WallBuilder wall) {
  const bool dumped = policy.filter_proof == FilterProof::dump;
  wall.at_the_door()
      .equals("mode", std::uint64_t{2})
      .equals("filters", std::uint64_t{1})
      .equals("proof", dumped ? "dumped from the process" : "compiled from the policy")
      .equals("differences", "none")
      .equals("i386", "killed")
      .equals("x32", "killed")
      .equals("unlisted_open", std::uint64_t{0})
      .counted("refused")
      .counted("of")
      .digest("sha256");
  wall.spent().counted("refused_calls");
  wall.at_the_end().equals("tasks", "none").equals("exec", "none");
  // Never true of a run that learns, so that it has no score whatever else happens.
  if (policy.seccomp.learn) wall.at_the_end().equals("answers", "by the rules");
}

void user_namespace(const Policy& policy, WallBuilder& wall) {
  wall.at_the_door().counted("host_user");
  wall.at_the_end().same_as("host_user.end", "namespaces.host_user").same_as("user.end", "namespaces.user");
  if (policy.user_namespace == UserNamespace::host) {
    wall.at_the_door().same_as("user", "namespaces.host_user");
    return;
  }
  const std::string uids = id_map(policy, policy.uid), gids = id_map(policy, policy.gid);
  wall.at_the_door().differs_from("user", "namespaces.host_user").equals("uid_map", uids).equals("gid_map", gids);
  wall.at_the_door().equals("user_owner",
                            policy.host_ids ? Value(std::uint64_t{policy.host_ids->root}) : Value(kNoIdsTaken));
  wall.at_the_end().equals("uid_map.end", uids).equals("gid_map.end", gids);
}

void namespaces(const Policy& policy, const HostFacts&, WallBuilder wall) {
  user_namespace(policy, wall);
  for (const char* type : {"mnt", "pid", "ipc", "uts", "cgroup"})
    wall.at_the_door().counted(std::string("host_") + type).differs_from(type, std::string("namespaces.host_") + type);
  // A namespace that is another than the host's can still be the delegate's, with the delegate in it.
  wall.at_the_door().equals("init", std::uint64_t{1});
  wall.at_the_end().equals("tasks", "none");
}

void teardown(const Policy&, const HostFacts&, WallBuilder wall) {
  wall.after()
      .equals("populated", std::uint64_t{0})
      .equals("processes_left", std::uint64_t{0})
      .counted_or("processes_killed", kInitEndedFirst)
      .equals("cgroup", "gone")
      .equals("mounts", "gone")
      .equals("run_folder", "gone")
      .equals("pid_namespace", "gone");
}

// That the process at the gate is ours, and the engine speaks of the same one. What the engine says proves nothing by itself.
void without_runtime(WallBuilder& wall) {
  wall.at_the_door()
      .named("gate_made")
      .same_as("gate", "evidence.gate_made")
      .counted("init")
      .same_as("engine_init", "evidence.init")
      .named("cgroup_parent")
      .same_as("engine_cgroup_parent", "evidence.cgroup_parent");
}

void evidence(const Policy& policy, const HostFacts&, WallBuilder wall) {
  wall.at_the_door()
      .named("cgroup_made")
      .same_as("cgroup_path", "evidence.cgroup_made")
      .counted("cgroup_id")
      .counted("init_start_time")
      .digest("config_sha256")
      .digest("delegate_sha256");
  wall.at_the_end()
      .equals("taken_down", kNothingTakenDown)
      .equals("delegate_exit", std::uint64_t{0})
      .same_as("cgroup_id.end", "evidence.cgroup_id")
      .same_as("init_start_time.end", "evidence.init_start_time")
      .same_as("config_sha256.end", "evidence.config_sha256");
  wall.spent().counted("execs");
  if (policy.plain) without_runtime(wall);
}

struct NamedWall {
  const char* name;
  void (*rules)(const Policy&, const HostFacts&, WallBuilder);
};

constexpr NamedWall kWalls[] = {
    {"network", network},   {"mounts", mounts},         {"rootfs", rootfs},     {"output", output},
    {"memory", memory},     {"processes", processes},   {"cpu-time", cpu_time}, {"wall-time", wall_time},
    {"stdio", stdio},       {"privileges", privileges}, {"syscalls", syscalls}, {"namespaces", namespaces},
    {"teardown", teardown}, {"evidence", evidence},
};

}  // namespace

const std::vector<std::string>& wall_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& wall : kWalls) list.emplace_back(wall.name);
    return list;
  }();
  return names;
}

std::vector<Rule> wall_rules(const Policy& policy, const HostFacts& host) {
  std::vector<Rule> rules;
  for (const auto& wall : kWalls) wall.rules(policy, host, WallBuilder(rules, wall.name));
  forgive_unobserved(policy, rules);
  return rules;
}

std::string walls_taken_down(const Policy& policy) {
  std::string names;
  for (const Relaxation relaxation : policy.taken_down)
    names += (names.empty() ? "" : ", ") + std::string(to_text(relaxation));
  return names.empty() ? kNothingTakenDown : names;
}

std::uint64_t cpu_backstop_seconds(const Policy& policy) {
  return (policy.limits.cpu_time_us + 999'999) / 1'000'000 + 1;
}

}  // namespace benchsand
