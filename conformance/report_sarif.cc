#include <algorithm>
#include <nlohmann/json.hpp>

#include "conformance/guest_text.h"
#include "conformance/reports.h"
#include "conformance/tally.h"

namespace benchsand::conformance {

using nlohmann::json;

namespace {

// GitHub shows no result without a place in a file; the page that makes the claim is the nearest there is.
constexpr const char* kPage = "docs/threats.md";

json message(const std::string& text) {
  return {{"text", text}};
}

json location(const std::string& wall, const std::string& id) {
  return {{"physicalLocation", {{"artifactLocation", {{"uri", kPage}}}, {"region", {{"startLine", 1}}}}},
          {"logicalLocations", {{{"fullyQualifiedName", wall + "/" + id}, {"kind", "member"}}}}};
}

json rule(const std::string& id, const std::string& asserts, const std::string& wall) {
  return {{"id", id},
          {"shortDescription", message(asserts)},
          {"fullDescription", message("wall " + wall + ": " + asserts)},
          {"defaultConfiguration", {{"level", "error"}}}};
}

// Level and kind: what is not "fail" would have to be of the level "none".
json finding(const std::string& id, std::size_t index, const std::string& text, const json& place) {
  return {{"ruleId", id},
          {"ruleIndex", index},
          {"kind", "fail"},
          {"level", "error"},
          {"message", message(text)},
          {"locations", json::array({place})},
          {"partialFingerprints", {{"benchsandCase/v1", id}}}};
}

std::string told(const CaseResult& result) {
  return std::string(to_text(result.verdict)) + ": " + line_text(result.attempt) + ": " + line_text(result.reason) +
         " (expected " + line_text(result.expected) + "; inside " + line_text(result.inside) + "; host " +
         line_text(result.host) + "; control " + line_text(result.control) + ")";
}

json run_json(const SuiteReport& report, const json& rules, const json& results) {
  json invocation = {{"executionSuccessful", passes(report)}, {"properties", {{"summary", summary_line(report)}}}};
  return {{"tool",
           {{"driver",
             {{"name", "benchsand conformance"}, {"version", line_text(report.about.version)}, {"rules", rules}}}}},
          {"automationDetails", {{"id", "benchsand-conformance/" + line_text(report.about.engine) + "/"}}},
          {"invocations", json::array({invocation})},
          {"results", results}};
}

std::string in_one_log(json run) {
  const json log = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs", json::array({std::move(run)})}};
  return log.dump(2, ' ', true) + "\n";
}

}  // namespace

std::string report_sarif(const SuiteReport& report, std::size_t most) {
  json rules = json::array(), results = json::array();
  if (report.cases.empty()) {
    rules.push_back(rule("suite", "the walls were attempted", "evidence"));
    results.push_back(finding("suite", 0, kNoAttempt, location("evidence", "suite")));
    return in_one_log(run_json(report, rules, results));
  }
  const auto failed = failures(report);
  for (std::size_t i = 0; i < std::min(failed.size(), most); ++i) {
    const std::string id = line_text(failed[i]->id), wall = line_text(failed[i]->wall);
    rules.push_back(rule(id, line_text(failed[i]->asserts), wall));
    results.push_back(finding(id, i, told(*failed[i]), location(wall, id)));
  }
  json run = run_json(report, rules, results);
  if (failed.size() > most)
    run["invocations"][0]["toolExecutionNotifications"] = json::array(
        {{{"level", "error"},
          {"message", message(std::to_string(failed.size() - most) + " further failures were cut, at most " +
                              std::to_string(most) + " are shown")}}});
  return in_one_log(std::move(run));
}

}  // namespace benchsand::conformance
