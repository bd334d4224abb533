#include "oci/profile.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "oci/processor_list.h"
#include "oci/timeline.h"
#include "oci/without_runtime.h"
#include "oci/yaml_reader.h"

namespace benchsand {
namespace {

std::vector<std::string> profile_keys() {
  return {"benchsand_profile", "name",         "limits",          "stdio_total", "memory_headroom", "collect",
          "identity",          "filter_proof", "timeline",        "refusals",    "rootfs_mount",    "egress_counters",
          "user_namespace",    "exec",         "without_runtime", "cpuset",      "seccomp"};
}

// A bound of the house is never unusable: falling back is for tasks, a profile is complete or refused.
std::optional<std::uint64_t> read_bound(const MappingReader& reader, std::string_view key, Unit unit,
                                        Problems& problems) {
  const YamlNode* node = reader.require(key);
  if (node == nullptr) return std::nullopt;
  const auto quantity = read_quantity(*node, reader.path_of(key), unit, problems);
  if (quantity && !quantity->usable) {
    problems.add(node->position,
                 reader.path_of(key) + ": " + in_quotes(node->text) + " is not a bound greater than zero");
    return std::nullopt;
  }
  return quantity ? std::optional(quantity->value) : std::nullopt;
}

void set_bound(const MappingReader& reader, std::string_view key, Unit unit, std::uint64_t& target,
               Problems& problems) {
  const auto value = read_bound(reader, key, unit, problems);
  if (value) target = *value;
}

void read_limit(const MappingReader& limits, const LimitField& field, Profile& profile, Problems& problems) {
  const YamlNode* node = limits.require(field.name);
  if (node == nullptr) return;
  const MappingReader reader(*node, limits.path_of(field.name), {"default", "max"}, problems);
  const auto standard = read_bound(reader, "default", field.unit, problems);
  const auto maximum = read_bound(reader, "max", field.unit, problems);
  if (!standard || !maximum) return;
  if (*standard > *maximum) {
    problems.add(node->position, limits.path_of(field.name) + ": the default " +
                                     format_quantity(*standard, field.unit) + " is over the max " +
                                     format_quantity(*maximum, field.unit));
    return;
  }
  profile.limits[std::string(field.name)] = Bound{.standard = *standard, .maximum = *maximum};
}

void read_limits(const YamlNode& node, Profile& profile, Problems& problems) {
  const MappingReader limits(node, "limits", limit_names(), problems);
  if (node.kind != YamlNode::Kind::mapping) return;
  for (const LimitField& field : kLimitFields) read_limit(limits, field, profile, problems);
}

void read_collect(const YamlNode& node, Profile& profile, Problems& problems) {
  const MappingReader collect(node, "collect", {"files", "bytes", "depth"}, problems);
  set_bound(collect, "files", Unit::count, profile.collect.files, problems);
  set_bound(collect, "bytes", Unit::bytes, profile.collect.bytes, problems);
  set_bound(collect, "depth", Unit::count, profile.collect.depth, problems);
}

void read_refusals(const YamlNode& node, Profile& profile, Problems& problems) {
  const MappingReader refusals(node, "refusals", {"total", "per_second"}, problems);
  set_bound(refusals, "total", Unit::count, profile.refusals.total, problems);
  set_bound(refusals, "per_second", Unit::count, profile.refusals.per_second, problems);
}

void read_id(const MappingReader& identity, std::string_view key, std::uint32_t& target, Problems& problems) {
  const YamlNode* node = identity.require(key);
  if (node == nullptr) return;
  const auto id = read_integer(*node, identity.path_of(key), problems);
  if (!id) return;
  // 2^32-1 is (uid_t)-1, which setresuid reads as "leave it", that is: stay root.
  if (*id == 0 || *id >= std::numeric_limits<std::uint32_t>::max()) {
    problems.add(node->position,
                 identity.path_of(key) + ": " + in_quotes(node->text) + " is not between 1 and 4294967294");
    return;
  }
  target = static_cast<std::uint32_t>(*id);
}

void read_identity(const YamlNode& node, Profile& profile, Problems& problems) {
  const MappingReader identity(node, "identity", {"uid", "gid"}, problems);
  read_id(identity, "uid", profile.uid, problems);
  read_id(identity, "gid", profile.gid, problems);
}

void read_filter_proof(const YamlNode& node, Profile& profile, Problems& problems) {
  const auto text = read_text(node, "filter_proof", problems);
  if (!text) return;
  if (*text == "dump")
    profile.filter_proof = FilterProof::dump;
  else if (*text == "compiled")
    profile.filter_proof = FilterProof::compiled;
  else
    problems.add(node.position, "filter_proof: " + in_quotes(*text) + " is neither \"dump\" nor \"compiled\"");
}

void read_timeline(const YamlNode& node, Profile& profile, Problems& problems) {
  if (node.kind == YamlNode::Kind::plain && node.text == "none") return;
  const auto interval = read_quantity(node, "timeline", Unit::duration_us, problems);
  if (!interval) return;
  if (interval->usable && interval->value >= kShortestIntervalUs && interval->value <= kLongestIntervalUs)
    profile.timeline_us = interval->value;
  else
    problems.add(node.position, "timeline: " + in_quotes(node.text) + " is neither \"none\" nor a time from " +
                                    format_quantity(kShortestIntervalUs, Unit::duration_us) + " to " +
                                    format_quantity(kLongestIntervalUs, Unit::duration_us));
}

void read_rootfs_mount(const YamlNode& node, Profile& profile, Problems& problems) {
  const auto text = read_text(node, "rootfs_mount", problems);
  if (!text) return;
  if (*text == "overlay")
    profile.rootfs_mount = RootfsMount::overlay;
  else if (*text == "bind")
    profile.rootfs_mount = RootfsMount::bind;
  else
    problems.add(node.position, "rootfs_mount: " + in_quotes(*text) + " is neither \"overlay\" nor \"bind\"");
}

void read_egress_counter(const YamlNode& node, Profile& profile, Problems& problems) {
  const auto text = read_text(node, "egress_counters", problems);
  if (!text) return;
  const auto counter = std::find_if(kEgressCounters.begin(), kEgressCounters.end(),
                                    [&](EgressCounter known) { return *text == to_text(known); });
  if (counter == kEgressCounters.end())
    problems.add(node.position,
                 "egress_counters: " + in_quotes(*text) + " is none of \"sockets\", \"connects\" and \"packets\"");
  else if (has(profile.egress_counters, *counter))
    problems.add(node.position, "egress_counters: " + in_quotes(*text) + " stands twice");
  else
    profile.egress_counters.push_back(*counter);
}

void read_egress_counters(const YamlNode& node, Profile& profile, Problems& problems) {
  if (!check_sequence(node, "egress_counters", problems)) return;
  for (const YamlNode& child : node.children) read_egress_counter(child, profile, problems);
}

void read_user_namespace(const YamlNode& node, Profile& profile, Problems& problems) {
  const auto text = read_text(node, "user_namespace", problems);
  if (!text) return;
  if (*text == "own")
    profile.user_namespace = UserNamespace::own;
  else if (*text == "host")
    profile.user_namespace = UserNamespace::host;
  else
    problems.add(node.position, "user_namespace: " + in_quotes(*text) + " is neither \"own\" nor \"host\"");
}

void read_exec(const YamlNode& node, Profile& profile, Problems& problems) {
  const auto text = read_text(node, "exec", problems);
  if (!text) return;
  if (*text == "allow")
    profile.exec = ExecRule::allow;
  else if (*text == "deny")
    profile.exec = ExecRule::deny;
  else
    problems.add(node.position, "exec: " + in_quotes(*text) + " is neither \"allow\" nor \"deny\"");
}

void read_unobserved_wall(const YamlNode& node, Profile& profile, Problems& problems) {
  const auto text = read_text(node, "without_runtime", problems);
  if (!text) return;
  const auto& walls = unobservable_walls();
  std::string names;
  for (const auto& wall : walls) names += (names.empty() ? "" : ", ") + in_quotes(wall);
  auto& chosen = profile.without_runtime;
  if (std::find(walls.begin(), walls.end(), *text) == walls.end())
    problems.add(node.position, "without_runtime: " + in_quotes(*text) + " is none of " + names);
  else if (std::find(chosen.begin(), chosen.end(), *text) != chosen.end())
    problems.add(node.position, "without_runtime: " + in_quotes(*text) + " stands twice");
  else
    chosen.push_back(*text);
}

void read_without_runtime(const YamlNode& node, Profile& profile, Problems& problems) {
  if (node.kind == YamlNode::Kind::plain && node.text == "refuse") return;
  if (node.kind != YamlNode::Kind::sequence || node.children.empty()) {
    problems.add(node.position, "without_runtime: \"refuse\" is due here, or a list of walls");
    return;
  }
  for (const YamlNode& child : node.children) read_unobserved_wall(child, profile, problems);
}

void read_cpuset(const YamlNode& node, Profile& profile, Problems& problems) {
  const auto text = read_text(node, "cpuset", problems);
  if (!text) return;
  if (const auto list = parse_processor_list(*text))
    profile.cpuset = list->text;
  else
    problems.add(node.position,
                 "cpuset: " + in_quotes(*text) + " is not a list of processors, for example \"0-3\" or \"0,2\"");
}

std::optional<ArgumentRule> read_argument_rule(const YamlNode& node, const std::string& path, Problems& problems) {
  const MappingReader reader(node, path, {"call", "arg", "mask", "is"}, problems);
  const YamlNode* call = reader.require("call");
  const YamlNode* index = reader.require("arg");
  const YamlNode* values = reader.require("is");
  if (call == nullptr || index == nullptr || values == nullptr) return std::nullopt;
  ArgumentRule rule;
  const auto name = read_nonempty_text(*call, reader.path_of("call"), problems);
  const auto number = read_integer(*index, reader.path_of("arg"), problems);
  if (number && *number > 5) problems.add(index->position, reader.path_of("arg") + ": a call has arguments 0 to 5");
  if (const YamlNode* mask = reader.find("mask")) {
    const auto bits = read_integer(*mask, reader.path_of("mask"), problems);
    if (bits) rule.mask = *bits;
  }
  if (!name || !number || *number > 5 || !check_sequence(*values, reader.path_of("is"), problems)) return std::nullopt;
  rule.call = *name;
  rule.index = static_cast<std::uint32_t>(*number);
  for (const YamlNode& child : values->children) {
    const auto value = read_integer(child, reader.path_of("is"), problems);
    if (!value) return std::nullopt;
    rule.values.push_back(*value);
  }
  if (rule.values.empty()) problems.add(values->position, reader.path_of("is") + ": no value is listed");
  return rule;
}

void read_allow_if(const YamlNode& node, SeccompRules& rules, Problems& problems) {
  if (!check_sequence(node, "seccomp.allow_if", problems)) return;
  for (const YamlNode& child : node.children) {
    const std::string path = "seccomp.allow_if[" + std::to_string(&child - node.children.data()) + "]";
    const auto rule = read_argument_rule(child, path, problems);
    if (rule) rules.allow_if.push_back(*rule);
  }
}

void read_refuse_with(const YamlNode& node, SeccompRules& rules, Problems& problems) {
  if (node.kind != YamlNode::Kind::mapping) {
    problems.add(node.position, "seccomp.refuse_with: a mapping of errno names to lists of calls is due here");
    return;
  }
  for (const YamlNode& child : node.children) {
    const auto calls = read_texts(child, "seccomp.refuse_with[" + in_quotes(child.key) + "]", problems);
    if (calls) rules.refuse_with.emplace_back(child.key, *calls);
  }
}

void read_seccomp(const YamlNode& node, SeccompRules& rules, Problems& problems) {
  const MappingReader reader(node, "seccomp", {"default", "notify", "allow", "allow_if", "refuse_with"}, problems);
  if (const YamlNode* standard = reader.require("default")) {
    const auto text = read_nonempty_text(*standard, reader.path_of("default"), problems);
    if (text) rules.default_errno = *text;
  }
  if (const YamlNode* notify = reader.require("notify")) {
    const auto calls = read_texts(*notify, reader.path_of("notify"), problems);
    if (calls) rules.notify = *calls;
  }
  if (const YamlNode* allow = reader.require("allow")) {
    const auto calls = read_texts(*allow, reader.path_of("allow"), problems);
    if (calls) rules.allow = *calls;
  }
  if (const YamlNode* conditional = reader.find("allow_if")) read_allow_if(*conditional, rules, problems);
  if (const YamlNode* refused = reader.find("refuse_with")) read_refuse_with(*refused, rules, problems);
}

// A task that asks for nothing must be able to run.
void check_memory_default(const Profile& profile, Position position, Problems& problems) {
  const std::uint64_t memory = profile.limits.at("memory").standard;
  const std::uint64_t disk = profile.limits.at("disk").standard;
  if (memory >= disk && memory - disk >= profile.memory_headroom_bytes) return;
  problems.add(position, "limits.memory.default: " + format_quantity(memory, Unit::bytes) +
                             " does not hold limits.disk.default " + format_quantity(disk, Unit::bytes) +
                             " and memory_headroom " + format_quantity(profile.memory_headroom_bytes, Unit::bytes));
}

void read_profile(const YamlNode& root, Profile& profile, Problems& problems) {
  if (!read_format_version(root, "benchsand_profile", problems)) return;
  const MappingReader reader(root, "", profile_keys(), problems);
  if (const YamlNode* name = reader.require("name")) {
    const auto text = read_name(*name, "name", problems);
    if (text) profile.name = *text;
  }
  const YamlNode* limits = reader.require("limits");
  if (limits != nullptr) read_limits(*limits, profile, problems);
  set_bound(reader, "stdio_total", Unit::bytes, profile.stdio_total_bytes, problems);
  set_bound(reader, "memory_headroom", Unit::bytes, profile.memory_headroom_bytes, problems);
  if (const YamlNode* collect = reader.require("collect")) read_collect(*collect, profile, problems);
  if (const YamlNode* identity = reader.require("identity")) read_identity(*identity, profile, problems);
  if (const YamlNode* proof = reader.require("filter_proof")) read_filter_proof(*proof, profile, problems);
  if (const YamlNode* timeline = reader.require("timeline")) read_timeline(*timeline, profile, problems);
  if (const YamlNode* refusals = reader.require("refusals")) read_refusals(*refusals, profile, problems);
  if (const YamlNode* mount = reader.require("rootfs_mount")) read_rootfs_mount(*mount, profile, problems);
  if (const YamlNode* counters = reader.require("egress_counters")) read_egress_counters(*counters, profile, problems);
  if (const YamlNode* user = reader.require("user_namespace")) read_user_namespace(*user, profile, problems);
  if (const YamlNode* exec = reader.require("exec")) read_exec(*exec, profile, problems);
  if (const YamlNode* walls = reader.require("without_runtime")) read_without_runtime(*walls, profile, problems);
  if (const YamlNode* cpuset = reader.find("cpuset")) read_cpuset(*cpuset, profile, problems);
  const YamlNode* seccomp = reader.require("seccomp");
  if (seccomp != nullptr) read_seccomp(*seccomp, profile.seccomp, problems);
  // The rules of the whole need the parts.
  if (!problems.none()) return;
  check_memory_default(profile, limits->position, problems);
  const auto checked = check_seccomp(profile.seccomp);
  if (!checked) problems.add(seccomp->position, checked.message());
}

}  // namespace

const char* to_text(RootfsMount mount) {
  switch (mount) {
    case RootfsMount::overlay:
      return "overlay";
    case RootfsMount::bind:
      return "bind";
  }
  std::abort();  // not a value of the enumeration
}

const char* to_text(UserNamespace user_namespace) {
  switch (user_namespace) {
    case UserNamespace::own:
      return "own";
    case UserNamespace::host:
      return "host";
  }
  std::abort();  // not a value of the enumeration
}

const char* to_text(ExecRule rule) {
  switch (rule) {
    case ExecRule::allow:
      return "allow";
    case ExecRule::deny:
      return "deny";
  }
  std::abort();  // not a value of the enumeration
}

Result<Profile> parse_profile(const std::string& text, const std::string& name) {
  const YamlSource source(name, text);
  const YamlNode root = TRY(parse_yaml(source));
  Problems problems(source);
  Profile profile;
  read_profile(root, profile, problems);
  if (!problems.none()) return problems.report();
  return profile;
}

}  // namespace benchsand
