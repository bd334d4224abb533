// A report counted and put in order, for those who write it down.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "conformance/suite_report.h"
#include "conformance/ten.h"

namespace benchsand::conformance {

// In the order of reports.
inline constexpr std::array kCaseVerdicts = {
    CaseVerdict::refused, CaseVerdict::inapplicable, CaseVerdict::confirmed_limit, CaseVerdict::limit_gone,
    CaseVerdict::vacuous, CaseVerdict::unknown,      CaseVerdict::escaped};

// 0 for REFUSED, the most for ESCAPED; those that pass come before those that do not.
unsigned badness(CaseVerdict verdict);

std::size_t count(const SuiteReport& report, CaseVerdict verdict);

// "148 attempts: 140 REFUSED, 2 INAPPLICABLE", the verdicts that occur; "no attempt was made" for none.
std::string summary_line(const SuiteReport& report);

// What an empty report fails with, in every format.
inline constexpr const char* kNoAttempt = "no attempt was made";

// One of the ten: all its cases, and the worst of them. No cases, and no worst: it was not tried.
struct CheckResult {
  TenCheck check;
  std::size_t attempts = 0;
  const CaseResult* worst = nullptr;  // of the report
};
std::vector<CheckResult> ten_results(const SuiteReport& report);

// The cases that do not pass, the worst first.
std::vector<const CaseResult*> failures(const SuiteReport& report);

// Cases that are of none of the ten, by wall: in the order of oci/walls, then what is none of them.
struct WallGroup {
  std::string wall;
  std::vector<const CaseResult*> cases;
};
std::vector<WallGroup> further_by_wall(const SuiteReport& report);

// "check 4, the thirty-third process: ten.forks", "kernel.bpf-map"
std::string name_of(const CaseResult& result);

// "41.200000"
std::string in_seconds(std::uint64_t us);

}  // namespace benchsand::conformance
