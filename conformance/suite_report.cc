#include "conformance/suite_report.h"

#include <algorithm>
#include <cstdlib>

namespace benchsand::conformance {

const char* to_text(CaseVerdict verdict) {
  switch (verdict) {
    case CaseVerdict::refused:
      return "REFUSED";
    case CaseVerdict::escaped:
      return "ESCAPED";
    case CaseVerdict::vacuous:
      return "VACUOUS";
    case CaseVerdict::inapplicable:
      return "INAPPLICABLE";
    case CaseVerdict::unknown:
      return "UNKNOWN";
    case CaseVerdict::confirmed_limit:
      return "CONFIRMED-LIMIT";
    case CaseVerdict::limit_gone:
      return "LIMIT-GONE";
  }
  std::abort();  // not a value of the enumeration
}

std::string whose_walls(const SuiteAbout& about) {
  const auto engine = [&](const char* suffix) { return about.engine.substr(0, about.engine.find(suffix)); };
  if (about.engine.ends_with(kWithoutBenchsand))
    return "these are the walls of " + engine(kWithoutBenchsand) + ", and none of benchsand's";
  if (about.engine.ends_with(kWithoutDoor))
    return "these are the walls that " + engine(kWithoutDoor) + " makes of benchsand's bundle, and nobody watched them";
  return "";
}

bool passes(CaseVerdict verdict) {
  switch (verdict) {
    case CaseVerdict::refused:
    case CaseVerdict::inapplicable:
    case CaseVerdict::confirmed_limit:
    case CaseVerdict::limit_gone:
      return true;
    case CaseVerdict::escaped:
    case CaseVerdict::vacuous:
    case CaseVerdict::unknown:
      return false;
  }
  std::abort();  // not a value of the enumeration
}

bool passes(const SuiteReport& report) {
  return !report.cases.empty() &&
         std::all_of(report.cases.begin(), report.cases.end(), [](const auto& c) { return passes(c.verdict); });
}

}  // namespace benchsand::conformance
