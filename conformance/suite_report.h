// What a run of the suite comes to: a line for every case, and about what. Pure; the formats of it are in report_*.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace benchsand::conformance {

enum class CaseVerdict {
  refused,          // as expected inside, the host agrees, and the control flipped
  escaped,          // it worked, or was refused in another way than expected
  vacuous,          // its control did not flip: refused or not, it shows nothing
  inapplicable,     // this kernel has no such thing: the control met the same, with the reason
  unknown,          // evidence that is missing, unreadable or contradicts itself
  confirmed_limit,  // what benchsand does not claim to stop was tried and works, as docs/threats.md says
  limit_gone,       // ... and was refused: the page is out of date
};
const char* to_text(CaseVerdict verdict);  // "REFUSED", …, "CONFIRMED-LIMIT", "LIMIT-GONE"

struct CaseResult {
  std::string id;        // "kernel.bpf-map"; of a-z 0-9 . -
  unsigned check = 0;    // 1 to 10: part of that one of the ten; 0: of none
  std::string wall;      // whose claim it is, a name of oci/walls
  std::string attempt;   // "make a BPF map"
  std::string asserts;   // "no BPF object can be made"
  std::string expected;  // "EPERM by seccomp"
  std::string inside;    // what the probe told; untrusted, any bytes
  std::string host;      // "ledger: bpf EPERM 1 of 1"
  std::string control;   // "without seccomp: ok"
  CaseVerdict verdict = CaseVerdict::unknown;
  std::string reason;  // why it is not REFUSED, or why it is inapplicable; empty else
};

// Behind the name of an engine whose containers were not made by benchsand's runtime: such a report is none of benchsand's walls.
inline constexpr const char* kWithoutBenchsand = " without benchsand";
// Its walls are benchsand's, and observed but for what docs/without-runtime.md names.
inline constexpr const char* kWithoutRuntime = " without benchsand's runtime";
// A bundle of benchsand's, by a runtime that takes no filter of it, and nobody watched.
inline constexpr const char* kWithoutDoor = " without benchsand's door";

struct SuiteAbout {
  std::string version;  // of benchsand
  std::string created;  // RFC 3339, UTC
  std::string engine, delegate, delegate_version, delegate_sha256;
  std::string kernel, cgroup;  // uname -r; v1, hybrid or v2
  std::string profile, profile_sha256, probe_sha256, cases_sha256;
  std::uint64_t duration_us = 0;
};

struct SuiteReport {
  SuiteAbout about;
  std::vector<CaseResult> cases;
  bool lacks_programs = false;  // all was asked for, and nobody gave the root file system of the ordinary programs
};

// "these are the walls of docker, and none of benchsand's", of a report that could be taken for one of benchsand's; empty else.
std::string whose_walls(const SuiteAbout& about);
// What is said then.
inline constexpr const char* kLacksPrograms =
    "curl, git, ssh, pip and other ordinary programs were not attempted: --programs ROOTFS names a root file system "
    "that has them";

bool passes(CaseVerdict verdict);        // refused, inapplicable, confirmed_limit, limit_gone
bool passes(const SuiteReport& report);  // there are cases, and each passes

}  // namespace benchsand::conformance
