#include "conformance/baseline.h"

#include <algorithm>
#include <map>

#include "conformance/guest_text.h"
#include "conformance/tally.h"
#include "oci/columns.h"

namespace benchsand::conformance {

namespace {

struct Fact {
  const char* what;
  std::string SuiteAbout::*member;
};
// Not the time of the run, nor how long it took.
constexpr Fact kFacts[] = {{"benchsand", &SuiteAbout::version},
                           {"engine", &SuiteAbout::engine},
                           {"delegate", &SuiteAbout::delegate},
                           {"delegate version", &SuiteAbout::delegate_version},
                           {"delegate digest", &SuiteAbout::delegate_sha256},
                           {"kernel", &SuiteAbout::kernel},
                           {"cgroup", &SuiteAbout::cgroup},
                           {"profile", &SuiteAbout::profile},
                           {"profile digest", &SuiteAbout::profile_sha256},
                           {"probe digest", &SuiteAbout::probe_sha256},
                           {"cases digest", &SuiteAbout::cases_sha256}};

// Of two cases with one name the worst counts: neither may hide the other.
std::map<std::string, const CaseResult*> by_id(const SuiteReport& report) {
  std::map<std::string, const CaseResult*> cases;
  for (const auto& result : report.cases) {
    const CaseResult*& kept = cases[result.id];
    if (!kept || badness(result.verdict) > badness(kept->verdict)) kept = &result;
  }
  return cases;
}

std::string with_reason(const std::string& text, const std::string& reason) {
  return reason.empty() ? text : text + " (" + ascii_text(reason) + ")";
}

std::string change_text(const VerdictChange& change) {
  return with_reason(ascii_text(change.id) + ": " + to_text(change.before) + " -> " + to_text(change.now),
                     change.reason);
}

}  // namespace

Drift drift_between(const SuiteReport& baseline, const SuiteReport& now) {
  Drift drift;
  for (const auto& fact : kFacts)
    if (baseline.about.*fact.member != now.about.*fact.member)
      drift.facts.push_back({fact.what, baseline.about.*fact.member, now.about.*fact.member});
  const auto old_cases = by_id(baseline), new_cases = by_id(now);
  for (const auto& [id, result] : new_cases) {
    const auto old = old_cases.find(id);
    if (old == old_cases.end()) {
      drift.appeared.push_back({id, result->verdict, result->verdict, result->reason});
      continue;
    }
    const VerdictChange change{id, old->second->verdict, result->verdict, result->reason};
    if (badness(change.now) > badness(change.before)) drift.worse.push_back(change);
    if (badness(change.now) < badness(change.before)) drift.better.push_back(change);
  }
  for (const auto& [id, result] : old_cases)
    if (!new_cases.contains(id)) drift.disappeared.push_back({id, result->verdict, result->verdict, ""});
  return drift;
}

bool is_regression(const Drift& drift) {
  return !drift.worse.empty() || !drift.disappeared.empty() ||
         std::any_of(drift.appeared.begin(), drift.appeared.end(), [](const auto& c) { return !passes(c.now); });
}

std::string drift_text(const Drift& drift) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [what, before, now] : drift.facts)
    rows.push_back({"changed", what + ": " + ascii_text(before) + " -> " + ascii_text(now)});
  for (const auto& change : drift.worse) rows.push_back({"worse", change_text(change)});
  for (const auto& change : drift.disappeared)
    rows.push_back({"disappeared", ascii_text(change.id) + ": was " + to_text(change.before)});
  for (const auto& change : drift.appeared)
    rows.push_back({"appeared", with_reason(ascii_text(change.id) + ": " + to_text(change.now), change.reason)});
  for (const auto& change : drift.better) rows.push_back({"better", change_text(change)});
  if (rows.empty()) return "no drift\n";
  rows.push_back({"drift", is_regression(drift) ? "REGRESSION" : "no verdict became worse"});
  return columns(rows);
}

}  // namespace benchsand::conformance
