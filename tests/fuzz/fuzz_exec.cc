// What an engine asks of a container that runs: a further process, and other limits. Neither may have more than the policy.
#include "json_mutator.h"
#include "oci/admit_exec.h"
#include "oci/tighten.h"
#include "support.h"

using namespace benchsand;
using fuzz::must;
using nlohmann::json;

namespace {

const Policy& policy() {
  static const Policy decided = [] {
    TaskSpec task;
    task.name = "fuzz";
    task.rootfs = "/srv/rootfs";
    task.command = {"/bin/true"};
    auto policy = decide(task, {std::string(64, 'a'), "/"}, fuzz::strict(), std::string(64, 'b'), fuzz::host());
    must(policy.has_value());
    return *policy;
  }();
  return decided;
}

void check_exec(const std::string& text) {
  const auto admission = admit_exec(text, policy(), false);
  if (!admission) {
    must(admission.error().kind == Error::Kind::usage && !admission.error().message.empty());
    return;
  }
  if (!admission->refusals.empty()) return;
  const json& process = admission->process;
  must(process.at("user").at("uid") == policy().uid && process.at("user").at("gid") == policy().gid);
  must(!process.at("user").contains("additionalGids"));
  must(process.at("noNewPrivileges") == true);
  for (const auto& [set, capabilities] : process.at("capabilities").items()) must(capabilities.empty());
  must(process.at("rlimits").size() == process_limits(policy()).size());
  for (const auto& limit : process.at("rlimits"))
    for (const auto& due : process_limits(policy()))
      if (limit.at("type") == due.type) must(limit.at("hard") == due.value && limit.at("soft") == due.value);
  must(!process.at("args").empty());
}

void check_update(const std::string& text) {
  const auto tightened = tighten(text, policy(), 0, fuzz::host(), fuzz::places());
  if (!tightened) {
    must(tightened.error().kind == Error::Kind::usage && !tightened.error().message.empty());
    return;
  }
  if (!tightened->refusals.empty()) return;
  must(tightened->limits.memory_bytes <= policy().limits.memory_bytes && tightened->limits.memory_bytes > 0);
  must(tightened->limits.processes <= policy().limits.processes && tightened->limits.processes > 0);
  must(tightened->limits.cpus_milli <= policy().limits.cpus_milli && tightened->limits.cpus_milli > 0);
  const auto& memory = tightened->resources.at("memory");
  must(memory.at("limit") == tightened->limits.memory_bytes);
  must(tightened->resources.at("pids").at("limit") == tightened->limits.processes);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return json_mutator::mutate(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_exec(text);
  check_update(text);
  return 0;
}
