#include "oci/verdict.h"

#include <set>

#include "oci/without_runtime.h"

namespace benchsand {

const char* to_text(Cause cause) {
  switch (cause) {
    case Cause::not_started:
      return "not-started";
    case Cause::exited:
      return "exited";
    case Cause::signaled:
      return "signaled";
    case Cause::cpu_time:
      return "cpu-time";
    case Cause::wall_time:
      return "wall-time";
    case Cause::memory:
      return "memory";
    case Cause::output:
      return "output";
    case Cause::refusals:
      return "refusals";
    case Cause::killed:
      return "killed";
  }
  return "not-started";
}

const char* to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::fault:
      return "fault";
    case Outcome::refused:
      return "refused";
    case Outcome::limit:
      return "limit";
    case Outcome::failed:
      return "failed";
    case Outcome::succeeded:
      return "succeeded";
  }
  return "fault";
}

namespace {

// Killed for memory while far from its own limit: an ancestor or the host ran out, which is not the candidate's doing. A
// sixteenth is more than the kernel's per-processor batches can hide.
bool ran_out_elsewhere(const EndFacts& facts, const Limits& limits) {
  return facts.memory_peak && *facts.memory_peak < limits.memory_bytes - limits.memory_bytes / 16;
}

// Nothing inside a pid namespace can SIGKILL its init, save a CPU rlimit that it set for itself, and one second is the
// smallest. So with less used, somebody on the host did it.
bool killed_from_outside(const EndFacts& facts) {
  constexpr int kSigkill = 9;
  constexpr std::uint64_t kSmallestCpuRlimitUs = 1'000'000;
  return (facts.wait_status & 0x7f) == kSigkill && facts.cpu_used_us < kSmallestCpuRlimitUs;
}

Cause cause_of(const EndFacts& facts, const Limits& limits, bool signaled) {
  if (facts.killed_for) return *facts.killed_for;
  if (facts.oom_kills > 0) return ran_out_elsewhere(facts, limits) ? Cause::killed : Cause::memory;
  if (facts.cpu_used_us > limits.cpu_time_us) return Cause::cpu_time;
  if (facts.wall_used_us > limits.wall_time_us) return Cause::wall_time;
  if (killed_from_outside(facts)) return Cause::killed;
  return signaled ? Cause::signaled : Cause::exited;
}

}  // namespace

End end_of(const EndFacts& facts, const Limits& limits) {
  End end;
  // The encoding of waitpid(2): the low seven bits are the signal, the second byte is the exit code.
  const int signal = facts.wait_status & 0x7f;
  if (signal == 0)
    end.exit_code = (facts.wait_status >> 8) & 0xff;
  else
    end.signal = signal;
  end.cause = cause_of(facts, limits, signal != 0);
  return end;
}

namespace {

Failure failure_of(const Rule& rule, const Observation* observation) {
  if (!observation) return {rule.wall, rule.expected, "missing: not observed", rule.key};
  if (const auto* missing = std::get_if<Missing>(&observation->seen))
    return {rule.wall, rule.expected, "missing: " + missing->why, observation->source};
  return {rule.wall, rule.expected, to_text(*observation->value()), observation->source};
}

// An observation nobody judges would be decoration in the record; it must get a rule or go.
std::vector<Failure> unruled(const std::vector<Rule>& rules, const Evidence& evidence) {
  std::set<std::string> known;
  for (const auto& rule : rules) known.insert(rule.key);
  std::vector<Failure> failures;
  for (const auto& [key, observation] : evidence.all())
    if (!known.contains(key))
      failures.push_back({"evidence", "a rule for every observation", "none for " + key, observation.source});
  return failures;
}

// A candidate that never started leaves no counters, but what was looked at after it must be clean all the same.
std::vector<Failure> broken_after(const std::vector<Rule>& rules, const Evidence& evidence) {
  std::vector<Rule> looked_at;
  for (const auto& rule : rules)
    if (rule.section == Section::after && evidence.find(rule.key)) looked_at.push_back(rule);
  return broken_rules(looked_at, evidence, false);
}

// How the end contradicts itself; empty when it does not.
std::string contradiction(const End& end) {
  if (end.cause == Cause::not_started) return "";
  if (end.exit_code.has_value() == end.signal.has_value()) return "not exactly one of exit code and signal";
  if (end.cause == Cause::exited && !end.exit_code) return "exited without an exit code";
  if (end.cause == Cause::signaled && !end.signal) return "signaled without a signal";
  return "";
}

Outcome outcome_of(const End& end) {
  switch (end.cause) {
    case Cause::exited:
      return *end.exit_code == 0 ? Outcome::succeeded : Outcome::failed;
    case Cause::signaled:
      return Outcome::failed;
    case Cause::cpu_time:
    case Cause::wall_time:
    case Cause::memory:
    case Cause::output:
    case Cause::refusals:
      return Outcome::limit;
    case Cause::killed:
    case Cause::not_started:
      return Outcome::fault;
  }
  return Outcome::fault;
}

}  // namespace

std::vector<Failure> broken_rules(const std::vector<Rule>& rules, const Evidence& evidence, bool door_only) {
  std::vector<Failure> failures;
  for (const auto& rule : rules) {
    if (door_only && !rule.at_door) continue;
    const Observation* observation = evidence.find(rule.key);
    const Value* value = observation ? observation->value() : nullptr;
    if (is_forgiven(rule, observation)) continue;
    if (!value || !rule.holds(*value, evidence)) failures.push_back(failure_of(rule, observation));
  }
  return failures;
}

Verdict judge(const std::vector<Rule>& rules, const Evidence& evidence, const End& end,
              const std::optional<AttestationClaim>&) {
  Verdict verdict;
  const bool started = end.cause != Cause::not_started;
  if (!end.fault.empty()) {
    verdict.failures = {{"evidence", "a run without a fault", end.fault, "benchsand"}};
    return verdict;
  }
  verdict.failures = broken_rules(rules, evidence, !started);
  if (!started)
    for (auto& failure : broken_after(rules, evidence)) verdict.failures.push_back(std::move(failure));
  for (auto& failure : unruled(rules, evidence)) verdict.failures.push_back(std::move(failure));
  if (const std::string why = contradiction(end); !why.empty())
    verdict.failures.push_back({"evidence", "one way to end", why, "the wait status of init"});
  if (rules.empty()) verdict.failures.push_back({"evidence", "rules", "none", "oci/walls.cc"});

  if (!verdict.failures.empty()) {
    verdict.outcome = Outcome::refused;
    return verdict;
  }
  verdict.outcome = outcome_of(end);
  verdict.scored = verdict.outcome != Outcome::fault;
  if (verdict.scored)
    verdict.tier = "reproducible";
  else
    verdict.failures.push_back({"evidence", "a run that ended by itself or by a cap", to_text(end.cause), "benchsand"});
  return verdict;
}

int exit_status(const Verdict& verdict, const End& end) {
  if (!verdict.scored) return 3;
  if (end.cause == Cause::cpu_time || end.cause == Cause::wall_time) return 124;
  return verdict.outcome == Outcome::succeeded ? 0 : 1;
}

}  // namespace benchsand
