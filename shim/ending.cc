#include "shim/ending.h"

#include <algorithm>

#include "oci/walls.h"

namespace benchsand {

namespace {

const std::uint64_t* number_at(const Evidence& evidence, const std::string& key) {
  const Observation* observation = evidence.find(key);
  const Value* value = observation ? observation->value() : nullptr;
  return value ? std::get_if<std::uint64_t>(value) : nullptr;
}

std::uint64_t beyond(std::uint64_t used, std::uint64_t limit) {
  return used > limit ? used - limit : 0;
}

}  // namespace

void spend(Evidence& evidence, const Watched& watched, const Policy& policy, std::uint64_t stdout_bytes,
           std::uint64_t stderr_bytes) {
  const Limits& limits = policy.limits;
  evidence.set("wall-time.used_us", watched.wall_used_us, "CLOCK_MONOTONIC");
  evidence.set("wall-time.overshoot_us",
               beyond(watched.killed_at_us ? *watched.killed_at_us : watched.wall_used_us, limits.wall_time_us),
               "CLOCK_MONOTONIC");
  for (const auto& [key, bytes] : {std::pair{"stdio.stdout_bytes", stdout_bytes}, {"stdio.stderr_bytes", stderr_bytes}})
    evidence.set(key, policy.terminal ? Value(kTerminal) : Value(bytes), policy.terminal ? "the policy" : "the pipe");
  if (watched.left_behind)
    evidence.set("teardown.processes_killed", *watched.left_behind, "cgroup.procs");
  else
    evidence.set("teardown.processes_killed", std::string(kInitEndedFirst), "cgroup.procs");

  const std::string source = "cpu.stat usage_usec";
  const auto *first = number_at(evidence, "cpu-time.usage_us"), *last = number_at(evidence, "cpu-time.usage_us.end");
  if (!first || !last || *last < *first) {
    const char* why = "usage_usec was not read twice, or went backwards";
    evidence.missing("cpu-time.used_us", why, source);
    return evidence.missing("cpu-time.overshoot_us", why, source);
  }
  evidence.set("cpu-time.used_us", *last - *first, source);
  const std::uint64_t enforced =
      watched.cpu_at_kill_us && *watched.cpu_at_kill_us >= *first ? *watched.cpu_at_kill_us : *last;
  evidence.set("cpu-time.overshoot_us", beyond(enforced - *first, limits.cpu_time_us), source);
}

// A number that is missing here breaks its wall; the notices of a run that is refused matter less.
RunShare run_share(const Evidence& evidence, const Limits& limits) {
  RunShare share;
  // Outputs are copied later.
  if (const auto* bytes = number_at(evidence, "stdio.stdout_bytes"))
    share.kept_bytes = std::min(*bytes, limits.stdout_bytes);
  if (const auto* bytes = number_at(evidence, "stdio.stderr_bytes"))
    share.kept_bytes += std::min(*bytes, limits.stderr_bytes);
  if (const auto* kills = number_at(evidence, "memory.oom_kills")) share.oom_kills = *kills;
  if (const auto* used = number_at(evidence, "wall-time.used_us")) share.wall_us = *used;
  if (const auto* used = number_at(evidence, "cpu-time.used_us")) share.cpu_us = *used;
  if (const auto* throttled = number_at(evidence, "cpu-time.throttled_us")) share.throttled_us = *throttled;
  const auto* peak = number_at(evidence, "memory.peak");
  share.near_memory_limit = !peak || *peak >= limits.memory_bytes - limits.memory_bytes / 16;
  return share;
}

// A number that is missing here breaks its wall in judge; the cause it would have given no longer matters then.
EndFacts end_facts(const Evidence& evidence, const Watched& watched, int wait_status) {
  EndFacts facts;
  facts.wait_status = wait_status;
  facts.killed_for = watched.killed_for;
  facts.wall_used_us = watched.wall_used_us;
  if (const auto* kills = number_at(evidence, "memory.oom_kills")) facts.oom_kills = *kills;
  if (const auto* peak = number_at(evidence, "memory.peak")) facts.memory_peak = *peak;
  if (const auto* used = number_at(evidence, "cpu-time.used_us")) facts.cpu_used_us = *used;
  return facts;
}

}  // namespace benchsand
