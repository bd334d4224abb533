#include "oci/tighten.h"

#include "oci/admit_rules.h"
#include "oci/config_shape.h"
#include "oci/processor_list.h"
#include "oci/strict_json.h"
#include "oci/units.h"
#include "oci/yaml_tree.h"

namespace benchsand {

using nlohmann::json;
using namespace admission;

namespace {

struct Tightening {
  const json& asked;
  const Policy& policy;
  std::uint64_t headroom;
  Tightened& result;

  const json* find(const char* pointer) const {
    const json::json_pointer place(pointer);
    return asked.contains(place) ? &asked.at(place) : nullptr;
  }
  void stays(const std::string& field, const json& value, const std::string& to, const std::string& wall) const {
    result.edits.push_back({field, brief(value), to, wall});
  }
};

void lower(const Tightening& at, std::uint64_t& limit, const char* field, std::optional<std::uint64_t> value, Unit unit,
           const std::string& wall) {
  const json* asked = at.find(field);
  if (asked == nullptr || *asked == 0) return;
  if (value && *value <= limit)
    limit = *value;
  else
    at.stays(field, *asked, "stays at " + format_quantity(limit, unit), wall);
}

void memory(const Tightening& at) {
  const json* limit = at.find("/memory/limit");
  lower(at, at.result.limits.memory_bytes, "/memory/limit", bound(limit), Unit::bytes, "memory");
  const Limits& limits = at.result.limits;
  if (limits.memory_bytes < limits.disk_bytes || limits.memory_bytes - limits.disk_bytes < at.headroom)
    at.result.refusals.push_back({"memory",
                                  format_quantity(limits.memory_bytes, Unit::bytes) +
                                      " of memory does not hold the output, " +
                                      format_quantity(limits.disk_bytes, Unit::bytes) +
                                      ", and the headroom of the profile, " + format_quantity(at.headroom, Unit::bytes),
                                  "ask for at least " + format_quantity(limits.disk_bytes + at.headroom, Unit::bytes)});
  const json* swap = at.find("/memory/swap");
  if (swap != nullptr && *swap != 0 && *swap != limits.memory_bytes)
    at.stays("/memory/swap", *swap, "as much as the limit, so none", "memory");
  for (const char* name : {"/memory/reservation", "/memory/kernel", "/memory/kernelTCP", "/memory/swappiness"}) {
    const json* value = at.find(name);
    if (value != nullptr && *value != 0 && *value != -1) at.stays(name, *value, "ignored", "memory");
  }
}

// A container needs its init and what it was asked to do.
constexpr std::uint64_t kFewestTasks = 2, kFewestMilli = 10;

void tasks(const Tightening& at) {
  const auto value = bound(at.find("/pids/limit"));
  if (value && *value < kFewestTasks)
    at.result.refusals.push_back({"processes", "no container runs with one task", "ask for at least 2"});
  lower(at, at.result.limits.processes, "/pids/limit", value, Unit::count, "processes");
}

void processors(const Tightening& at) {
  const json* cpu = at.find("/cpu");
  if (cpu == nullptr) return;
  const auto value = asked_cpus_milli(*cpu);
  if (value && *value < kFewestMilli)
    at.result.refusals.push_back(
        {"cpu-time", "a quota below a hundredth of a processor", "ask for at least --cpus 0.01"});
  lower(at, at.result.limits.cpus_milli, "/cpu/quota", value, Unit::milli, "cpu-time");
  for (const char* name : {"/cpu/shares", "/cpu/burst", "/cpu/realtimeRuntime", "/cpu/realtimePeriod", "/cpu/idle"}) {
    const json* share = at.find(name);
    if (share != nullptr && *share != 0) at.stays(name, *share, "ignored", "cpu-time");
  }
}

void placement(const Tightening& at) {
  if (const json* asked = at.find("/cpu/cpus"); asked != nullptr && *asked != "") {
    const auto list = parse_processor_list(asked->get<std::string>());
    if (!list || list->text != at.policy.cpuset)
      at.result.refusals.push_back({"cpu-time", "processors " + brief(*asked) + " are not those of the profile",
                                    "update it without --cpuset-cpus"});
  }
  if (const json* asked = at.find("/cpu/mems"); asked != nullptr && *asked != "")
    at.result.refusals.push_back(
        {"memory", "memory nodes " + brief(*asked) + " cannot be had", "update it without --cpuset-mems"});
}

void files_of_cgroup(const Tightening& at) {
  const json* unified = at.find("/unified");
  if (unified != nullptr && !unified->empty())
    at.result.refusals.push_back(
        {"evidence", "cgroup files are benchsand's to write", "ask for memory, pids and cpus"});
  const json* devices = at.find("/devices");
  if (devices != nullptr && !devices->empty())
    at.stays("/devices", *devices, "every device refused but benchsand's six", "privileges");
  for (const char* name : {"/blockIO", "/hugepageLimits", "/network", "/rdma"}) {
    const json* value = at.find(name);
    if (value != nullptr && !asks_nothing(*value)) at.stays(name, *value, "ignored", "output");
  }
}

}  // namespace

Result<Tightened> tighten(const std::string& resources_text, const Policy& policy, std::uint64_t memory_headroom_bytes,
                          const HostFacts& host, const BundlePlaces& places) {
  const json asked = TRY(parse_strict_json(resources_text, "resources"));
  std::vector<std::string> unknown;
  TRY_VOID(check_config_shape(asked, "/linux/resources", "resources", unknown));
  Tightened result;
  result.limits = policy.limits;
  const Tightening at{asked, policy, memory_headroom_bytes, result};
  for (const auto rule : {memory, tasks, processors, placement, files_of_cgroup}) rule(at);
  for (const auto& pointer : unknown) result.edits.push_back({pointer, "unknown to benchsand", "ignored", "evidence"});
  Policy tightened = policy;
  tightened.limits = result.limits;
  result.resources = resources_json(tightened, host, places);
  // They were set for good when the container was made; crun would attach its program anew.
  result.resources.erase("devices");
  return result;
}

}  // namespace benchsand
