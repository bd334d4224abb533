#include "oci/policy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "oci/processor_list.h"
#include "oci/units.h"
#include "oci/without_runtime.h"
#include "oci/yaml_tree.h"

namespace benchsand {
namespace {

// What /proc tells about the host or lets a process do to it. Some need privileges the candidate does not have;
// masked all the same, so that one wall is not held up by another. A kernel does not have all of them.
const std::vector<std::string> kMaskedPaths{
    "/proc/acpi",          "/proc/asound",      "/proc/bus",         "/proc/cmdline",     "/proc/config.gz",
    "/proc/diskstats",     "/proc/driver",      "/proc/fs",          "/proc/interrupts",  "/proc/iomem",
    "/proc/ioports",       "/proc/irq",         "/proc/kallsyms",    "/proc/kcore",       "/proc/key-users",
    "/proc/keys",          "/proc/kmsg",        "/proc/kpagecgroup", "/proc/kpagecount",  "/proc/kpageflags",
    "/proc/latency_stats", "/proc/locks",       "/proc/mdstat",      "/proc/modules",     "/proc/pagetypeinfo",
    "/proc/partitions",    "/proc/sched_debug", "/proc/scsi",        "/proc/slabinfo",    "/proc/softirqs",
    "/proc/swaps",         "/proc/timer_list",  "/proc/timer_stats", "/proc/vmallocinfo",
};
const std::vector<std::string> kReadonlyPaths{"/proc/sys", "/proc/sysrq-trigger"};

constexpr std::array<std::string_view, 3> kKernelDirectories{"/proc", "/dev", "/sys"};

// What the rules below read and write.
struct Decision {
  const TaskSpec& task;
  const TaskSource& source;
  const Profile& profile;
  const HostFacts& host;
  Policy policy;
  std::vector<std::string> problems;
};

bool is_inside(std::string_view path, std::string_view directory) {
  return path == directory || directory == "/" || (path.starts_with(directory) && path[directory.size()] == '/');
}

// "/", or "/a/b" without empty, "." or ".." components. The kernel would resolve others, and then the mount table would
// not hold the path that was granted.
bool is_normal_path(std::string_view path) {
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) return false;
  if (path == "/") return true;
  std::size_t start = 1;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view component = path.substr(start, end - start);
    if (component.empty() || component == "." || component == "..") return false;
    start = end + 1;
  }
  return true;
}

// Joined, not resolved: a ".." after a symlink must mean to benchsand what it means to the author's shell.
std::string host_path(const std::string& path, const TaskSource& source) {
  if (path.starts_with('/')) return path;
  const std::string relative = path.starts_with("./") ? path.substr(2) : path;
  return source.directory + (source.directory.ends_with('/') ? "" : "/") + relative;
}

// "task.yaml:7:13: limits.memory", or "--set limits.memory", which names the limit already.
std::string bound_name(const AskedBound& asked, const std::string& name) {
  const std::string key = "limits." + name;
  return asked.where.ends_with(" " + key) ? asked.where : asked.where + ": " + key;
}

void decide_limit(Decision& decision, const LimitField& field) {
  const std::string name(field.name);
  const auto bound = decision.profile.limits.find(name);
  if (bound == decision.profile.limits.end()) {
    decision.problems.push_back("profile " + in_quotes(decision.profile.name) + ": no bound for limits." + name);
    return;
  }
  std::uint64_t& target = decision.policy.limits.*field.member;
  target = bound->second.standard;
  const auto asked = decision.task.limits.find(name);
  if (asked == decision.task.limits.end()) return;
  const AskedBound& wish = asked->second;
  if (!wish.usable) {
    decision.policy.notices.push_back(
        bound_name(wish, name) + ": " + in_quotes(wish.text) + " is not a usable bound; the default of profile " +
        in_quotes(decision.profile.name) + " holds, " + format_quantity(target, field.unit));
    return;
  }
  if (wish.value > bound->second.maximum) {
    decision.problems.push_back(bound_name(wish, name) + ": " + in_quotes(wish.text) +
                                " is over the maximum of profile " + in_quotes(decision.profile.name) + ", " +
                                format_quantity(bound->second.maximum, field.unit));
    return;
  }
  target = wish.value;
}

void decide_limits(Decision& decision) {
  for (const LimitField& field : kLimitFields) decide_limit(decision, field);
  for (const auto& [name, asked] : decision.task.limits) {
    const bool known = std::any_of(kLimitFields.begin(), kLimitFields.end(),
                                   [&](const LimitField& field) { return field.name == name; });
    if (!known) decision.problems.push_back(bound_name(asked, name) + ": unknown limit");
  }
}

bool asked_for(const Decision& decision, const std::string& limit) {
  const auto asked = decision.task.limits.find(limit);
  return asked != decision.task.limits.end() && asked->second.usable;
}

// A task that asks for little memory and says nothing about disk means a small sandbox, not a contradiction.
void fit_default_disk(Decision& decision) {
  Limits& limits = decision.policy.limits;
  const std::uint64_t headroom = decision.profile.memory_headroom_bytes;
  if (asked_for(decision, "disk") || !asked_for(decision, "memory") || limits.memory_bytes <= headroom ||
      limits.memory_bytes - headroom >= limits.disk_bytes)
    return;
  limits.disk_bytes = limits.memory_bytes - headroom;
  decision.policy.notices.push_back("limits.disk: " + format_quantity(limits.disk_bytes, Unit::bytes) +
                                    " instead of the default of profile " + in_quotes(decision.profile.name) +
                                    ", which limits.memory " + format_quantity(limits.memory_bytes, Unit::bytes) +
                                    " does not hold beside the headroom");
}

// Below these no container starts, or the kernel refuses the value: a quota under 1 ms in a period of 100, a delegate's init
// that needs a second task or a few descriptors.
void check_smallest(Decision& decision) {
  struct Smallest {
    std::string_view limit;
    std::uint64_t value;
  };
  constexpr std::array kSmallest{Smallest{"cpus", 10}, Smallest{"processes", 2}, Smallest{"open_files", 64}};
  for (const auto& [limit, value] : kSmallest) {
    const auto field =
        std::find_if(kLimitFields.begin(), kLimitFields.end(), [&](const LimitField& f) { return f.name == limit; });
    const std::uint64_t decided = decision.policy.limits.*(field->member);
    if (decided < value)
      decision.problems.push_back("limits." + std::string(limit) + ": " + format_quantity(decided, field->unit) +
                                  " is too little for a container to start, which takes " +
                                  format_quantity(value, field->unit));
  }
}

// The output tmpfs is charged to the same cgroup: a task that fills it would be killed for memory, not refused for disk.
void check_memory_holds_disk(Decision& decision) {
  const Limits& limits = decision.policy.limits;
  const std::uint64_t headroom = decision.profile.memory_headroom_bytes;
  if (limits.memory_bytes >= limits.disk_bytes && limits.memory_bytes - limits.disk_bytes >= headroom) return;
  decision.problems.push_back("limits.memory: " + format_quantity(limits.memory_bytes, Unit::bytes) +
                              " does not hold limits.disk " + format_quantity(limits.disk_bytes, Unit::bytes) +
                              " and the headroom of profile " + in_quotes(decision.profile.name) + ", " +
                              format_quantity(headroom, Unit::bytes) + "; ask for more memory or less disk");
}

void notice_what_cannot_be_reached(Decision& decision) {
  const Limits& limits = decision.policy.limits;
  if (limits.cpus_milli == 0) return;  // its own problem was noted
  if (asked_for(decision, "cpu_time") && limits.cpu_time_us / limits.cpus_milli > limits.wall_time_us / 1000) {
    decision.policy.notices.push_back("limits.cpu_time: " + format_quantity(limits.cpu_time_us, Unit::duration_us) +
                                      " cannot be used up by " + format_quantity(limits.cpus_milli, Unit::milli) +
                                      " cpus within limits.wall_time " +
                                      format_quantity(limits.wall_time_us, Unit::duration_us));
  }
  if (limits.cpus_milli / 1000 > decision.host.processors ||
      (limits.cpus_milli / 1000 == decision.host.processors && limits.cpus_milli % 1000 != 0)) {
    decision.policy.notices.push_back("limits.cpus: " + format_quantity(limits.cpus_milli, Unit::milli) +
                                      " is more than this host has, " + std::to_string(decision.host.processors));
  }
}

void notice_small_cpuset(Decision& decision) {
  const auto list = parse_processor_list(decision.profile.cpuset);
  if (!list || decision.policy.limits.cpus_milli <= list->count * 1000) return;
  decision.policy.notices.push_back("limits.cpus: " + format_quantity(decision.policy.limits.cpus_milli, Unit::milli) +
                                    " is more than the cpuset of profile " + in_quotes(decision.profile.name) +
                                    " has, " + std::to_string(list->count));
}

void decide_command(Decision& decision) {
  const auto holds_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  decision.policy.command = decision.task.command;
  if (decision.task.command.empty() || decision.task.command.front().empty()) {
    decision.problems.push_back("command: the program is missing");
  }
  if (std::any_of(decision.task.command.begin(), decision.task.command.end(), holds_nul)) {
    decision.problems.push_back("command: text cannot hold a NUL byte");
  }
}

void decide_env(Decision& decision) {
  const std::string& output = decision.task.output;
  std::map<std::string, std::string> env{
      {"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", output}, {"TMPDIR", output}};
  for (const auto& [name, value] : decision.task.env) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
      decision.problems.push_back("env: " + in_quotes(name) + " cannot be a name: it is empty or holds '=' or NUL");
    } else if (value.find('\0') != std::string::npos) {
      decision.problems.push_back("env[" + in_quotes(name) + "]: text cannot hold a NUL byte");
    } else {
      env[name] = value;
    }
  }
  for (const auto& [name, value] : env) decision.policy.env.push_back(name + "=" + value);
  std::sort(decision.policy.env.begin(), decision.policy.env.end());
}

void check_mount_target(Decision& decision, const std::string& key, const std::string& target) {
  const std::string what = decision.task.place_of(key) + key;
  if (!is_normal_path(target)) {
    decision.problems.push_back(what + ": " + in_quotes(target) +
                                " is not an absolute path without '.', '..' and empty parts");
    return;
  }
  if (target == "/") decision.problems.push_back(what + ": \"/\" is the root file system itself");
  for (const std::string_view directory : kKernelDirectories) {
    if (is_inside(target, directory)) {
      decision.problems.push_back(what + ": " + in_quotes(target) + " is in " + std::string(directory) +
                                  ", which belongs to the kernel");
    }
  }
}

void decide_mounts(Decision& decision) {
  decision.policy.output = decision.task.output;
  check_mount_target(decision, "output", decision.task.output);
  std::vector<std::pair<std::string, std::string>> targets{{"output", decision.task.output}};
  for (std::size_t i = 0; i < decision.task.inputs.size(); ++i) {
    const InputMount& input = decision.task.inputs[i];
    const std::string item = "inputs[" + std::to_string(i) + "]", what = item + ".target";
    check_mount_target(decision, what, input.target);
    decision.policy.places["input for " + input.target] = decision.task.place_of(item + ".source");
    for (const auto& [other, other_target] : targets) {
      if (!is_inside(input.target, other_target) && !is_inside(other_target, input.target)) continue;
      decision.problems.push_back(decision.task.place_of(what) + what + ": " + in_quotes(input.target) + " overlaps " +
                                  other + " " + in_quotes(other_target));
    }
    targets.emplace_back(what, input.target);
    decision.policy.inputs.push_back({.source = host_path(input.source, decision.source), .target = input.target});
  }
  std::sort(decision.policy.inputs.begin(), decision.policy.inputs.end(),
            [](const InputMount& a, const InputMount& b) { return a.target < b.target; });
}

void decide_host_paths(Decision& decision) {
  for (const char* key : {"rootfs", "image", "stdin"}) decision.policy.places[key] = decision.task.place_of(key);
  if (!decision.source.directory.starts_with('/')) {
    decision.problems.push_back("the directory of the task file, " + in_quotes(decision.source.directory) +
                                ", is not absolute");
  }
  if (decision.task.rootfs.empty() && !decision.task.image) decision.problems.push_back("rootfs: the text is empty");
  if (!decision.task.rootfs.empty()) decision.policy.rootfs = host_path(decision.task.rootfs, decision.source);
  decision.policy.image = decision.task.image;
  if (decision.policy.image && decision.policy.image->form != ImageForm::stored)
    decision.policy.image->path = host_path(decision.policy.image->path, decision.source);
  if (decision.task.stdin_file) decision.policy.stdin_file = host_path(*decision.task.stdin_file, decision.source);
}

void decide_workdir(Decision& decision) {
  decision.policy.workdir = decision.task.workdir ? *decision.task.workdir : decision.task.output;
  if (decision.task.workdir && !is_normal_path(*decision.task.workdir)) {
    decision.problems.push_back(decision.task.place_of("workdir") + "workdir: " + in_quotes(*decision.task.workdir) +
                                " is not an absolute path without '.', '..' and empty parts");
  }
}

void take_from_profile(Decision& decision) {
  const Profile& profile = decision.profile;
  Policy& policy = decision.policy;
  policy.profile_name = profile.name;
  policy.stdio_total_bytes = profile.stdio_total_bytes;
  policy.collect = profile.collect;
  policy.uid = profile.uid;
  policy.gid = profile.gid;
  policy.masked_paths = kMaskedPaths;
  policy.readonly_paths = kReadonlyPaths;
  policy.filter_proof = profile.filter_proof;
  policy.timeline_us = profile.timeline_us;
  policy.refusals = profile.refusals;
  policy.seccomp = profile.seccomp;
  policy.cpuset = profile.cpuset;
  if (profile.filter_proof == FilterProof::compiled) policy.relaxations.push_back("filter_proof: compiled");
  policy.rootfs_mount = profile.rootfs_mount;
  if (profile.rootfs_mount == RootfsMount::bind) policy.relaxations.push_back("rootfs_mount: bind");
  policy.egress_counters = profile.egress_counters;
  policy.exec = profile.exec;
  policy.without_runtime = profile.without_runtime;
  for (const EgressCounter counter : kEgressCounters)
    if (!has(profile.egress_counters, counter))
      policy.relaxations.push_back(std::string("egress_counters: without ") + to_text(counter));
  policy.user_namespace = profile.user_namespace;
  if (profile.user_namespace == UserNamespace::host) policy.relaxations.push_back("user_namespace: host");
  if (const std::string trusted = trusted_calls(profile.seccomp); !trusted.empty())
    policy.relaxations.push_back("seccomp: allows " + trusted);
  const std::string asked = decision.task.profile ? *decision.task.profile : "strict";
  if (asked != profile.name) {
    policy.notices.push_back("profile: the task asks for " + in_quotes(asked) + ", the run uses " +
                             in_quotes(profile.name));
  }
}

constexpr std::array kRules{take_from_profile,       decide_limits,     fit_default_disk,
                            check_memory_holds_disk, check_smallest,    notice_what_cannot_be_reached,
                            notice_small_cpuset,     decide_command,    decide_env,
                            decide_mounts,           decide_host_paths, decide_workdir};

}  // namespace

const char* to_text(CgroupLayout layout) {
  switch (layout) {
    case CgroupLayout::v1:
      return "v1";
    case CgroupLayout::hybrid:
      return "hybrid";
    case CgroupLayout::v2:
      return "v2";
  }
  std::abort();  // not a value of the enumeration
}

Result<Policy> decide(const TaskSpec& task, const TaskSource& source, const Profile& profile,
                      const std::string& profile_sha256, const HostFacts& host) {
  Decision decision{.task = task, .source = source, .profile = profile, .host = host, .policy = {}, .problems = {}};
  decision.policy.task_name = task.name;
  decision.policy.task_sha256 = source.sha256;
  decision.policy.profile_sha256 = profile_sha256;
  for (const auto& rule : kRules) rule(decision);
  if (decision.problems.empty()) return std::move(decision.policy);
  std::string message;
  for (const std::string& problem : decision.problems) message += (message.empty() ? "" : "\n") + problem;
  return usage(message);
}

void take_terminal(Policy& policy) {
  if (policy.terminal) return;
  policy.terminal = true;
  policy.relaxations.push_back("terminal: what is written to it is neither counted nor capped");
}

namespace {

// What stands beside the rest in an engine's container that its own runtime made. Of ours: the gate, and what hides /sys, which a
// direct run does not have. Of the engine's, where the profile takes it: a /proc that can be written to, and its files.
void grant_plain(const Policy& policy, std::vector<GrantedMount>& granted) {
  for (const char* target : {kGatePlace, "/sys", "/sys/fs/cgroup"})
    granted.push_back({.target = target, .required = {"nosuid", "nodev"}, .types = {"tmpfs"}});
  if (policy.without_runtime.empty()) return;
  for (auto& mount : granted)
    if (mount.target == "/proc") mount.writable = true;
  for (const char* target : {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv"})
    granted.push_back({.target = target, .required = {}, .types = {}, .optional = true});
}

}  // namespace

std::vector<GrantedMount> granted_mounts(const Policy& policy) {
  std::vector<GrantedMount> granted;
  // Both delegates mount the root anew with `ro` alone. What else its mount had goes, except in a user namespace that did not
  // make the mount: there the kernel has locked it.
  const std::set<std::string> kept =
      policy.user_namespace == UserNamespace::own ? std::set<std::string>{"nosuid", "nodev"} : std::set<std::string>{};
  granted.push_back({.target = "/", .required = kept, .types = {}});
  granted.back().own = policy.rootfs_mount == RootfsMount::overlay;
  granted.push_back({.target = "/proc", .required = {"nosuid", "nodev", "noexec"}, .types = {"proc"}});
  // That it is read-only keeps devices from being added.
  granted.push_back({.target = "/dev", .required = {"nosuid", "noexec"}, .types = {"tmpfs"}});
  // What the delegate makes of a terminal: a file system with it alone, and it once more as the console.
  if (policy.terminal) {
    granted.push_back({.target = "/dev/pts", .writable = true, .required = {"nosuid", "noexec"}, .types = {"devpts"}});
    // crun binds it without the flags of the file system that it is from.
    granted.push_back({.target = "/dev/console", .writable = true, .required = {}, .types = {"devpts"}});
  }
  for (const InputMount& input : policy.inputs) {
    granted.push_back({.target = input.target, .required = {"nosuid", "nodev"}, .types = {}});
    granted.back().own = policy.rootfs_mount == RootfsMount::overlay;
  }
  granted.push_back({.target = policy.output, .writable = true, .required = {"nosuid", "nodev"}, .types = {"tmpfs"}});
  for (const std::string& path : policy.masked_paths) {
    granted.push_back({.target = path, .required = {}, .types = {"tmpfs", "devtmpfs"}, .optional = true, .mask = true});
  }
  for (const std::string& path : policy.readonly_paths) {
    granted.push_back({.target = path, .required = {}, .types = {"proc"}, .optional = true});
  }
  if (policy.plain) grant_plain(policy, granted);
  return granted;
}

}  // namespace benchsand
