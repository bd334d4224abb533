#include "oci/engine_says.h"

#include <algorithm>

#include "oci/json_path.h"
#include "oci/record.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr auto at = json_at;

// What is compared, engine against kernel; `null` where the kernel's side is not in the record, which then has no score anyway.
struct Said {
  const char* wall;
  const char* pointer;  // in the engine's document; the same for Docker and Podman
  json kernel;
  std::string kernel_source;
};

const json& observed(const json& record, const std::string& wall, const std::string& name) {
  return at(record, "/evidence/established/" + wall + "/" + name + "/observed");
}

std::vector<Said> sayings(const std::string& container, const EngineSays& says, const json& record) {
  const json limit = says.asks_for_no_swap_limit ? json(-1) : at(record, "/policy/limits/memory_bytes");
  std::vector<Said> list = {
      {"evidence", "/Id", container, "the id that it gave the container"},
      {"memory", "/HostConfig/Memory", observed(record, "memory", "limit"), "the cgroup"},
      {"memory", "/HostConfig/MemorySwap", limit, "the policy: memory and swap together"},
      {"processes", "/HostConfig/PidsLimit", observed(record, "processes", "limit"), "the cgroup"},
      {"network", "/HostConfig/NetworkMode", "none", "the policy, and the links of the network namespace"},
      {"rootfs", "/HostConfig/ReadonlyRootfs", true, "the policy, and the mount table"},
      {"privileges", "/HostConfig/Privileged", false, "the policy, and the capabilities of every task"},
  };
  // Without the runtime the engine was asked for them; the mount table says what became of it.
  if (at(record, "/policy/plain") != true)
    list.push_back({"mounts", "/Mounts", json::array(), "the policy: the run's mounts are none of the engine's"});
  return list;
}

std::string source_of(ApiKind kind, const std::string& pointer) {
  return std::string(to_text(kind)) + " inspect: " + pointer;
}

void compare(ApiKind kind, const std::vector<Said>& list, const json& document, const char* when,
             std::vector<Failure>& failures) {
  for (const auto& said : list) {
    const json& word = at(document, said.pointer);
    if (said.kernel.is_null() || word == said.kernel) continue;
    failures.push_back({said.wall, said.kernel.dump() + " (" + said.kernel_source + ")",
                        word.is_null() ? "missing" : word.dump(), source_of(kind, said.pointer) + ", " + when});
  }
}

// A network beyond "none", whatever the container was asked to have.
void compare_networks(ApiKind kind, const json& document, std::vector<Failure>& failures) {
  const json& networks = at(document, "/NetworkSettings/Networks");
  std::string names;
  if (networks.is_object())
    for (const auto& [name, value] : networks.items())
      if (name != "none") names += (names.empty() ? "" : ", ") + name;
  const json& address = at(document, "/NetworkSettings/IPAddress");
  if (address.is_string() && address != "") names += (names.empty() ? "" : ", ") + address.get<std::string>();
  if (!names.empty())
    failures.push_back({"network", "no network (links: lo)", names, source_of(kind, "/NetworkSettings")});
}

// An init that is held before its death of a fault of its own is killed where others could undo the fault; its engine hears of
// the killing alone.
bool is_killed_at_fault(const json& record, const json& word) {
  constexpr int kFaults[] = {4, 5, 7, 8, 11, 31},
                kKilled = 128 + 9;  // SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS
  const json& signal = at(record, "/end/signal");
  return word == kKilled && signal.is_number_integer() &&
         std::find(std::begin(kFaults), std::end(kFaults), signal.get<int>()) != std::end(kFaults);
}

// As a shell shows it.
json exit_status_of(const json& record) {
  const json& code = at(record, "/end/exit_code");
  if (code.is_number_integer()) return code;
  const json& signal = at(record, "/end/signal");
  return signal.is_number_integer() ? json(128 + signal.get<int>()) : json();
}

void compare_end(ApiKind kind, const json& document, const json& record, std::vector<Failure>& failures) {
  const auto check = [&](const char* wall, const char* pointer, const json& kernel, const char* source) {
    compare(kind, {{wall, pointer, kernel, source}}, document, "at the end", failures);
  };
  check("teardown", "/State/Running", false, "no process is left");
  if (!is_killed_at_fault(record, at(document, "/State/ExitCode")))
    check("evidence", "/State/ExitCode", exit_status_of(record), "the exit status of init");
  const json& kills = at(record, "/evidence/spent/memory/oom_kills/observed");
  if (kills == 0) check("memory", "/State/OOMKilled", false, "the cgroup counted no kill for memory");
}

}  // namespace

std::vector<Failure> disagreements(ApiKind kind, const std::string& container, const EngineSays& says,
                                   const json& record) {
  std::vector<Failure> failures;
  const auto list = sayings(container, says, record);
  compare(kind, list, says.created, "before the start", failures);
  compare(kind, list, says.ended, "at the end", failures);
  compare_networks(kind, says.ended, failures);
  if (at(record, "/verdict/scored") == true) compare_end(kind, says.ended, record, failures);
  return failures;
}

bool is_running(const json& inspect) {
  return at(inspect, "/State/Running") == true;
}

std::vector<Failure> pid_disagreement(ApiKind kind, const json& inspect, std::uint64_t pid) {
  std::vector<Failure> failures;
  if (is_running(inspect))
    compare(kind, {{"evidence", "/State/Pid", pid, "init, as its runtime made it"}}, inspect, "while it ran", failures);
  return failures;
}

json unscored(json record, std::vector<Failure> failures, const std::string& fault) {
  json& verdict = record["verdict"];
  if (!fault.empty()) failures.push_back({"evidence", "a run without a fault", fault, "benchsand"});
  for (const auto& failure : failures)
    verdict["failures"].push_back({{"wall", failure.wall},
                                   {"expected", printable(failure.expected)},
                                   {"observed", printable(failure.observed)},
                                   {"source", printable(failure.source)}});
  if (verdict["scored"] == true) verdict["outcome"] = to_text(fault.empty() ? Outcome::refused : Outcome::fault);
  verdict["scored"] = false;
  verdict["tier"] = nullptr;
  record["digest"] = record_digest(record);
  return record;
}

json with_notices(json record, const std::vector<std::string>& notices) {
  for (const auto& notice : notices) record["notices"].push_back(printable(notice));
  record["digest"] = record_digest(record);
  return record;
}

}  // namespace benchsand
