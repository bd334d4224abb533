#include <algorithm>
#include <array>

#include "oci/admit_rules.h"
#include "oci/yaml_tree.h"

namespace benchsand::admission {

using nlohmann::json;

namespace {

constexpr std::array<std::string_view, 6> kOwnNamespaces{"pid", "network", "mount", "ipc", "uts", "cgroup"};

std::string wall_of_namespace(std::string_view type) {
  return type == "network" ? "network" : "namespaces";
}

// Not there means the host's; with a path it is somebody else's: the engine's, or another container's.
void namespaces(Admitting& admitting) {
  std::vector<std::string> seen;
  if (const json* list = admitting.find("/linux/namespaces"))
    for (std::size_t i = 0; i < list->size(); ++i) {
      const json& entry = (*list)[i];
      const std::string type = entry.contains("type") ? entry["type"].get<std::string>() : "";
      const std::string field = "/linux/namespaces/" + std::to_string(i);
      seen.push_back(type);
      if (entry.contains("path"))
        admitting.edit(field, type + " of " + entry["path"].get<std::string>(), "a new one", wall_of_namespace(type));
      else if (type != "user" && std::find(kOwnNamespaces.begin(), kOwnNamespaces.end(), type) == kOwnNamespaces.end())
        admitting.edit(field, in_quotes(type), "left out", "namespaces");
    }
  for (const auto type : kOwnNamespaces)
    if (std::find(seen.begin(), seen.end(), type) == seen.end())
      admitting.edit("/linux/namespaces", "the " + std::string(type) + " of the host", "a new one",
                     wall_of_namespace(type));
}

void id_mappings(Admitting& admitting) {
  for (const char* field : {"/linux/uidMappings", "/linux/gidMappings"})
    admitting.drop(field, "the run's own user namespace", "namespaces");
}

void devices(Admitting& admitting) {
  const json* list = admitting.find("/linux/devices");
  if (list == nullptr) return;
  if (privileged(admitting)) return admitting.drop("/linux/devices", "none", "privileges");
  for (const json& device : *list) {
    const std::string path = device.contains("path") ? device["path"].get<std::string>() : "";
    if (one_of(path, {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/console",
                      "/dev/ptmx"}))
      continue;
    admitting.refuse("privileges", "the device " + in_quotes(path) + " is of the host",
                     "start it without --device; there are null, zero, full, random, urandom and tty");
  }
  admitting.document["linux"].erase("devices");
}

void net_devices(Admitting& admitting) {
  const json* list = admitting.find("/linux/netDevices");
  if (list != nullptr && !list->empty())
    admitting.refuse("network", "a network device of the host would be moved in", "leave linux.netDevices out");
}

// Docker's and Podman's own defaults are about a network, and there is none.
void sysctls(Admitting& admitting) {
  const json* all = admitting.find("/linux/sysctl");
  if (all == nullptr) return;
  const std::size_t refused_before = admitting.result.refusals.size();
  for (const auto& [name, value] : all->items())
    if (!one_of(name, {"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range"}))
      admitting.refuse("namespaces", "the sysctl " + in_quotes(name) + " would change the kernel's own default",
                       "start it without --sysctl");
  if (admitting.result.refusals.size() == refused_before)
    admitting.drop("/linux/sysctl", "the kernel's defaults", "namespaces");
}

struct Wish {
  const char* field;
  const char* wall;
};

// What no policy has a word for yet. To leave it out would be to run something else than was asked for.
void wishes(Admitting& admitting) {
  for (const auto& [field, wall] : {Wish{"/linux/intelRdt", "cpu-time"}, Wish{"/linux/memoryPolicy", "memory"},
                                    Wish{"/linux/timeOffsets", "namespaces"}}) {
    const json* wish = admitting.find(field);
    if (wish != nullptr && !wish->empty()) admitting.refuse(wall, in_quotes(field) + " cannot be had", "leave it out");
  }
}

void personality(Admitting& admitting) {
  const json* asked = admitting.find("/linux/personality");
  if (asked == nullptr) return;
  const bool plain = (!asked->contains("domain") || (*asked)["domain"] == "LINUX") &&
                     (!asked->contains("flags") || (*asked)["flags"].empty());
  if (!plain)
    admitting.refuse("syscalls", "the personality " + brief(*asked) + " is another system call interface",
                     "leave linux.personality out");
  admitting.document["linux"].erase("personality");
}

void seccomp(Admitting& admitting) {
  const json* asked = admitting.find("/linux/seccomp");
  admitting.edit("/linux/seccomp", asked == nullptr ? "no filter" : brief(*asked),
                 "the rules of profile " + in_quotes(admitting.context.profile.name), "syscalls");
  if (asked != nullptr) admitting.document["linux"].erase("seccomp");
}

void paths(Admitting& admitting) {
  for (const char* field : {"/linux/maskedPaths", "/linux/readonlyPaths"}) {
    const json* asked = admitting.find(field);
    admitting.edit(field, asked == nullptr ? "none" : brief(*asked), "benchsand's own list", "mounts");
  }
  const json* hidden = admitting.find("/linux/maskedPaths");
  if (hidden == nullptr) return;
  // Benchsand's list covers the kernel's files. A file of the image that somebody hides must not come to light.
  for (const json& entry : *hidden) {
    const std::string path = normal_path(entry.get<std::string>());
    if (!is_inside(path, "/proc") && !is_inside(path, "/sys"))
      admitting.refuse("mounts", "the path " + in_quotes(path) + " cannot be hidden",
                       "leave it out of the image, or mount another file there read-only");
  }
}

void propagation(Admitting& admitting) {
  const json* asked = admitting.find("/linux/rootfsPropagation");
  if (asked != nullptr && !one_of(asked->get<std::string>(), {"", "private", "rprivate"}))
    admitting.edit("/linux/rootfsPropagation", brief(*asked), "\"private\"", "mounts");
}

void cgroups_path(Admitting& admitting) {
  admitting.drop("/linux/cgroupsPath", "the run's own, inside a cgroup of benchsand's", "evidence");
}

void keep(Admitting&) {}

}  // namespace

// As `--privileged` writes it: every device may be used. The devices listed beside it are then no wish for any of them.
bool privileged(const Admitting& admitting) {
  const json* rules = admitting.find("/linux/resources/devices");
  if (rules == nullptr) return false;
  return std::any_of(rules->begin(), rules->end(), [](const json& rule) {
    return rule.contains("allow") && rule["allow"] == true && !rule.contains("major") && !rule.contains("minor") &&
           (!rule.contains("type") || rule["type"] == "a" || rule["type"] == "");
  });
}

const std::vector<NamedRule> kLinuxRules{
    {{"/linux/namespaces", "namespaces",
      "new ones of all six types, whoever's were asked for, and the run's own user namespace"},
     namespaces},
    {{"/linux/uidMappings, gidMappings", "namespaces", "the run's own two ids"}, id_mappings},
    {{"/linux/devices", "privileges",
      "none but benchsand's six; under `--privileged` left out, otherwise refused by name"},
     devices},
    {{"/linux/netDevices", "network", "refused"}, net_devices},
    {{"/linux/sysctl", "namespaces", "Docker's and Podman's defaults are left out, others refused"}, sysctls},
    {{"/linux/intelRdt, memoryPolicy, timeOffsets", "memory", "refused"}, wishes},
    {{"/linux/personality", "syscalls", "`LINUX` without flags is left out, others refused"}, personality},
    {{"/linux/seccomp", "syscalls", "the profile's filter"}, seccomp},
    {{"/linux/maskedPaths, readonlyPaths", "mounts",
      "benchsand's own; a masked path outside `/proc` and `/sys` is refused"},
     paths},
    {{"/linux/rootfsPropagation", "mounts", "private"}, propagation},
    {{"/linux/cgroupsPath", "evidence", "the run's own"}, cgroups_path},
    {{"/linux/mountLabel", "privileges", "kept"}, keep},
};

}  // namespace benchsand::admission
