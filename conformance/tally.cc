#include "conformance/tally.h"

#include <algorithm>

#include "oci/walls.h"

namespace benchsand::conformance {

unsigned badness(CaseVerdict verdict) {
  const auto found = std::find(kCaseVerdicts.begin(), kCaseVerdicts.end(), verdict);
  return static_cast<unsigned>(found - kCaseVerdicts.begin());
}

std::size_t count(const SuiteReport& report, CaseVerdict verdict) {
  return static_cast<std::size_t>(std::count_if(report.cases.begin(), report.cases.end(),
                                                [&](const CaseResult& result) { return result.verdict == verdict; }));
}

std::string summary_line(const SuiteReport& report) {
  if (report.cases.empty()) return kNoAttempt;
  std::string text, between = ": ";
  for (const auto verdict : kCaseVerdicts) {
    const std::size_t n = count(report, verdict);
    if (n == 0) continue;
    text += between + std::to_string(n) + " " + to_text(verdict);
    between = ", ";
  }
  return std::to_string(report.cases.size()) + (report.cases.size() == 1 ? " attempt" : " attempts") + text;
}

std::vector<CheckResult> ten_results(const SuiteReport& report) {
  std::vector<CheckResult> results;
  for (const auto& check : kTenChecks) {
    CheckResult result{check, 0, nullptr};
    for (const auto& one : report.cases) {
      if (one.check != check.number) continue;
      ++result.attempts;
      if (!result.worst || badness(one.verdict) > badness(result.worst->verdict)) result.worst = &one;
    }
    results.push_back(result);
  }
  return results;
}

std::vector<const CaseResult*> failures(const SuiteReport& report) {
  std::vector<const CaseResult*> failed;
  for (const auto& result : report.cases)
    if (!passes(result.verdict)) failed.push_back(&result);
  std::stable_sort(failed.begin(), failed.end(),
                   [](const auto* a, const auto* b) { return badness(a->verdict) > badness(b->verdict); });
  return failed;
}

std::vector<WallGroup> further_by_wall(const SuiteReport& report) {
  std::vector<WallGroup> groups;
  for (const auto& wall : wall_names()) groups.push_back({wall, {}});
  for (const auto& result : report.cases) {
    // A number that is of none of the ten must not hide a case.
    if (result.check >= 1 && result.check <= kChecks) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.wall == result.wall; });
    if (group == groups.end()) group = groups.insert(groups.end(), WallGroup{result.wall, {}});
    group->cases.push_back(&result);
  }
  std::erase_if(groups, [](const auto& group) { return group.cases.empty(); });
  return groups;
}

std::string name_of(const CaseResult& result) {
  for (const auto& check : kTenChecks)
    if (check.number == result.check)
      return "check " + std::to_string(check.number) + ", " + check.title + ": " + result.id;
  return result.id;
}

std::string in_seconds(std::uint64_t us) {
  const std::string fraction = std::to_string(us % 1'000'000);
  return std::to_string(us / 1'000'000) + "." + std::string(6 - fraction.size(), '0') + fraction;
}

}  // namespace benchsand::conformance
