// The verdict of one case: from what the probe told of it, what the host counted, and what the same attempt came to without the
// wall. Pure; only REFUSED, and INAPPLICABLE with its reason, let the suite pass.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "conformance/case.h"
#include "conformance/suite_report.h"

namespace benchsand::conformance {

struct Told {  // one line of the probe's
  std::string outcome, detail;
};

// What one sandbox came to. The probe's text is the candidate's: it can lower a verdict, never raise it.
struct SceneResult {
  std::map<std::string, Told> told;  // by verb
  bool whole = false;                // the probe said `end`
  std::string fault;                 // not empty: there was no sandbox, and why
  std::string broken_walls;          // that the record names, besides the ones taken down
  bool counted = true;               // what was refused; not without benchsand's runtime
  bool own_kernel = false;           // gVisor's: calls that are let through come to it, and not to the host's
  nlohmann::json record;
  std::optional<std::uint64_t> opened;  // events on the planted file; absent: not watched
};

// The lines of the probe. A line that is not one, a verb that was not asked for or is told twice: no line at all counts.
void read_told(const std::string& text, const std::vector<std::string>& asked, SceneResult& scene);

// Of the calls that cases say are counted, those that the record's ledger has in another number than cases were refused.
std::map<std::string, std::string> ledger_differences(const std::vector<const Case*>& cases, const SceneResult& scene,
                                                      const HostFacts& host_facts);

CaseResult judge_case(const Case& one, const HostFacts& host_facts, const SceneResult& strict,
                      const SceneResult* control, const std::map<std::string, std::string>& ledger);

}  // namespace benchsand::conformance
