// A report against an earlier one of the same host: what changed below the suite, and what that did to the verdicts.
#pragma once

#include <string>
#include <vector>

#include "conformance/suite_report.h"

namespace benchsand::conformance {

struct FactChange {
  std::string what;  // "kernel"
  std::string before, now;
};

struct VerdictChange {
  std::string id;
  CaseVerdict before, now;
  std::string reason;  // now
};

struct Drift {
  std::vector<FactChange> facts;
  std::vector<VerdictChange> worse, better;
  std::vector<VerdictChange> appeared;     // before = now
  std::vector<VerdictChange> disappeared;  // now = before
};

Drift drift_between(const SuiteReport& baseline, const SuiteReport& now);

// A verdict that became worse, a case that is not made any more, or a new one that does not pass. What changed below, alone, is none.
bool is_regression(const Drift& drift);

// A line for each; "no drift" for none.
std::string drift_text(const Drift& drift);

}  // namespace benchsand::conformance
