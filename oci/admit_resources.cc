#include <algorithm>

#include "oci/admit_rules.h"
#include "oci/processor_list.h"
#include "oci/yaml_tree.h"

namespace benchsand::admission {

using nlohmann::json;

namespace {

const std::string kResources = "/linux/resources";

void memory(Admitting& admitting) {
  const std::string field = kResources + "/memory";
  const json* limit = admitting.find(field + "/limit");
  if (const auto bytes = bound(limit)) admitting.ask("memory", *bytes, field + "/limit");
  const json* swap = admitting.find(field + "/swap");
  if (swap != nullptr && (limit == nullptr || *swap != *limit))
    admitting.edit(field + "/swap", brief(*swap), "as much as the limit, so none", "memory");
  for (const char* name : {"reservation", "kernel", "kernelTCP", "swappiness", "disableOOMKiller"}) {
    const json* value = admitting.find(field + "/" + name);
    if (value != nullptr && !asks_nothing(*value))
      admitting.edit(field + "/" + name, brief(*value), "left out", "memory");
  }
}

// Podman writes its own default when nobody asked.
constexpr std::uint64_t kPodmanTasks = 2048;

void pids(Admitting& admitting) {
  const std::string field = kResources + "/pids/limit";
  const json* asked = admitting.find(field);
  const auto limit = bound(asked);
  if (limit && !(admitting.result.caller == "podman" && *limit == kPodmanTasks))
    return admitting.ask("processes", *limit, field);
  if (asked != nullptr) admitting.edit(field, brief(*asked), "the profile's default", "processes");
}

void cpu_quota(Admitting& admitting) {
  const json* cpu = admitting.find(kResources + "/cpu");
  if (cpu == nullptr) return;
  if (const auto milli = asked_cpus_milli(*cpu)) admitting.ask("cpus", *milli, kResources + "/cpu/quota");
}

void cpuset(Admitting& admitting) {
  const std::string field = kResources + "/cpu/cpus";
  if (const json* asked = admitting.find(field); asked != nullptr && *asked != "") {
    const auto list = parse_processor_list(asked->get<std::string>());
    if (!list || list->text != admitting.context.profile.cpuset)
      admitting.refuse("cpu-time", "processors " + brief(*asked) + " are not those of the profile",
                       "start it without --cpuset-cpus, or use a profile with that cpuset");
  }
  const std::string nodes = kResources + "/cpu/mems";
  if (const json* asked = admitting.find(nodes); asked != nullptr && *asked != "")
    admitting.refuse("memory", "memory nodes " + brief(*asked) + " cannot be had", "start it without --cpuset-mems");
}

void cpu_shares(Admitting& admitting) {
  for (const char* name : {"shares", "burst", "realtimeRuntime", "realtimePeriod", "idle"}) {
    const std::string field = kResources + "/cpu/" + name;
    const json* value = admitting.find(field);
    if (value != nullptr && !asks_nothing(*value) && *value != 1024)
      admitting.edit(field, brief(*value), "left out", "cpu-time");
  }
}

void device_rules(Admitting& admitting) {
  const json* rules = admitting.find(kResources + "/devices");
  if (rules == nullptr || rules->size() > 1 || privileged(admitting))
    admitting.edit(kResources + "/devices", rules == nullptr ? "no rule" : std::to_string(rules->size()) + " rules",
                   "every device refused but benchsand's six", "privileges");
}

void others(Admitting& admitting) {
  for (const char* name : {"blockIO", "hugepageLimits", "network", "rdma"}) {
    const std::string field = kResources + "/" + name;
    const json* value = admitting.find(field);
    if (value != nullptr && !asks_nothing(*value)) admitting.edit(field, brief(*value), "left out", "output");
  }
}

void unified(Admitting& admitting) {
  const json* all = admitting.find(kResources + "/unified");
  if (all == nullptr) return;
  for (const auto& [name, value] : all->items())
    admitting.refuse("evidence", "the cgroup file " + in_quotes(name) + " is benchsand's to write",
                     "ask with --memory, --pids-limit and --cpus instead of --cgroup-conf");
}

// Nothing of the engine's is handed on: render_bundle says all that the delegate is to know.
void clear(Admitting& admitting) {
  if (admitting.find(kResources) != nullptr) admitting.document["linux"].erase("resources");
}

}  // namespace

bool asks_nothing(const json& value) {
  if (value.is_structured()) return std::all_of(value.begin(), value.end(), asks_nothing);
  return value == 0 || value == -1 || value == "" || value == false;
}

std::optional<std::uint64_t> asked_cpus_milli(const json& cpu) {
  const auto quota = bound(cpu.contains("quota") ? &cpu["quota"] : nullptr);
  if (!quota) return std::nullopt;
  constexpr std::uint64_t kKernelDefault = 100'000, kLongest = std::uint64_t{1} << 50;
  const std::uint64_t period = bound(cpu.contains("period") ? &cpu["period"] : nullptr).value_or(kKernelDefault);
  // Rounded up: a quota is never nothing. What would overflow is beyond every maximum.
  return (std::min(*quota, kLongest) * 1000 + std::min(period, kLongest) - 1) / std::min(period, kLongest);
}

const std::vector<NamedRule> kResourceRules{
    {{"/linux/resources/memory", "memory",
      "`limit` is a wish for `memory`; swap is pinned to none; the rest is left out"},
     memory},
    {{"/linux/resources/pids", "processes", "a wish for `processes`, but Podman's default of 2048 is none"}, pids},
    {{"/linux/resources/cpu/quota, period", "cpu-time", "a wish for `cpus`"}, cpu_quota},
    {{"/linux/resources/cpu/cpus, mems", "cpu-time", "refused, unless it is the profile's cpuset"}, cpuset},
    {{"/linux/resources/cpu/shares, burst, realtime, idle", "cpu-time", "left out"}, cpu_shares},
    {{"/linux/resources/devices", "privileges", "all refused but benchsand's six"}, device_rules},
    {{"/linux/resources/blockIO, hugepageLimits, network, rdma", "output", "left out"}, others},
    {{"/linux/resources/unified", "evidence", "refused"}, unified},
    {{"/linux/resources", "evidence", "else nothing of the engine's"}, clear},
};

}  // namespace benchsand::admission
