// From evidence to a verdict. Pure, and without an early exit: every wall that does not hold is named at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oci/evidence.h"
#include "oci/walls.h"

namespace benchsand {

// How the run ended. The zero value is the one that can never be scored.
enum class Cause { not_started, exited, signaled, cpu_time, wall_time, memory, output, refusals, killed };
const char* to_text(Cause cause);

struct End {
  Cause cause = Cause::not_started;
  std::optional<int> exit_code;  // exactly one of exit_code and signal once init has ended
  std::optional<int> signal;
  std::string fault;  // not empty: benchsand or the host failed, in words
};

// What the host knows when init is a zombie.
struct EndFacts {
  int wait_status = 0;                       // of init, as waitpid gives it
  std::optional<Cause> killed_for;           // the supervisor killed, and why
  std::uint64_t oom_kills = 0;               // in the run's cgroup
  std::optional<std::uint64_t> memory_peak;  // absent where the kernel does not keep it
  std::uint64_t cpu_used_us = 0, wall_used_us = 0;
};

// Who ended the run. A cap that was passed counts also when the candidate ended by itself before it was stopped, and one
// child killed for memory makes it a memory limit whatever init returned.
End end_of(const EndFacts& facts, const Limits& limits);

enum class Outcome { fault, refused, limit, failed, succeeded };
const char* to_text(Outcome outcome);

struct Failure {
  std::string wall;
  std::string expected;
  std::string observed;  // the value, or "missing: WHY"
  std::string source;
};

// A report that claims hardware vouches for the run. No verifier of such reports exists in this version,
// so a claim is recorded and changes nothing: it neither raises the tier nor excuses a wall.
struct AttestationClaim {
  std::string provider;
};

struct Verdict {
  bool scored = false;
  Outcome outcome = Outcome::fault;
  std::optional<std::string> tier;  // "reproducible" when scored
  std::vector<Failure> failures;
};

// The rules that are broken or unknown. `door_only`: those that must hold before the candidate starts.
std::vector<Failure> broken_rules(const std::vector<Rule>& rules, const Evidence& evidence, bool door_only);

Verdict judge(const std::vector<Rule>& rules, const Evidence& evidence, const End& end,
              const std::optional<AttestationClaim>& claim);

// Exit status of `benchsand run` (docs/verdicts.md): 0, 1, 3 or 124.
int exit_status(const Verdict& verdict, const End& end);

}  // namespace benchsand
