// The walls: for a policy, the list of everything that must have been observed and what it must have been.
// To change or add a wall, change walls.cc; judge, the record, the table and the tests follow from the list.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "oci/evidence.h"
#include "oci/policy.h"

namespace benchsand {

enum class Section { established, spent, after };  // where the record shows it

struct Rule {
  std::string wall;  // one of wall_names()
  std::string key;   // of the observation: "memory.limit"
  Section section = Section::established;
  bool at_door = false;            // must hold before the candidate's first instruction
  std::string expected;            // the number, or words
  bool may_be_unobserved = false;  // and only for the reason kNotWithoutRuntime (oci/without_runtime.h)
  // The whole evidence is there for rules that compare two observations.
  std::function<bool(const Value&, const Evidence&)> holds;
};

// In the order of the table in docs/verdicts.md.
const std::vector<std::string>& wall_names();

// Which kernel file an observation comes from depends on the cgroup layout; what must hold does not.
std::vector<Rule> wall_rules(const Policy& policy, const HostFacts& host);

// What a kernel without an optional counter is recorded with (pids.peak before 6.6, memory.peak before 5.19).
inline constexpr const char* kNotInThisKernel = "not in this kernel";

// What a host without the controller that would count is recorded with.
inline constexpr const char* kNotOnThisHost = "not on this host";

// What stands for the processors of a run where no cpuset controller is at work.
inline constexpr const char* kNoCpuset = "no cpuset";

// Left-over processes are counted when init calls exit_group, or before the supervisor kills. An init that ends in another
// way (a signal, exit(2) by its last thread) takes its pid namespace along before anybody can count.
inline constexpr const char* kInitEndedFirst = "init ended before they could be counted";

// What may stand in /dev, by name and number; see `privileges`.
inline constexpr const char* kAllowedDevices = "full 1:7, null 1:3, random 1:8, tty 5:0, urandom 1:9, zero 1:5";

// With a terminal, it is there as the console too.
inline constexpr const char* kAllowedDevicesOfTerminal =
    "console 136:0, full 1:7, null 1:3, pts/0 136:0, pts/ptmx 5:2, random 1:8, tty 5:0, urandom 1:9, zero 1:5";

// What stands for the bytes of a stream that is a terminal.
inline constexpr const char* kTerminal = "a terminal";

// A run with a wall taken down for a test (oci/relaxation.h) is recorded in full and never scored.
inline constexpr const char* kNothingTakenDown = "no wall taken down for a test";
std::string walls_taken_down(const Policy& policy);  // that, or the names

// RLIMIT_CPU is per process, so it cannot be the cpu-time wall; it ends a spinner should the supervisor die.
std::uint64_t cpu_backstop_seconds(const Policy& policy);

// A cap that the host enforced later than this did not stand.
inline constexpr std::uint64_t kLatestEnforcementUs = 2'000'000;

}  // namespace benchsand
