#include "conformance/guest_text.h"
#include "conformance/reports.h"
#include "conformance/tally.h"

namespace benchsand::conformance {

namespace {

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + xml_text(value) + "\"";
}

std::string property(const char* name, const std::string& value) {
  return std::string("<property") + attribute("name", name) + attribute("value", value) + "/>";
}

// Everything that was seen; of a verdict that passes and is not REFUSED, a viewer shows it beside the test.
std::string properties(const CaseResult& result) {
  std::string text = "      <properties>\n";
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += "        " + property(name, value) + "\n";
  };
  add("verdict", to_text(result.verdict));
  if (result.check != 0) add("check", std::to_string(result.check));
  add("attempt", result.attempt);
  add("asserts", result.asserts);
  add("expected", result.expected);
  add("inside", result.inside);
  add("host", result.host);
  add("control", result.control);
  if (result.verdict == CaseVerdict::limit_gone) add("warning", "a limit that the documentation names is gone");
  if (passes(result.verdict)) add("reason", result.reason);
  return text + "      </properties>\n";
}

// <error> for what nobody could judge, <failure> for a wall that did not stand. Never <skipped>, which viewers count as good.
std::string complaint(const CaseResult& result) {
  if (passes(result.verdict)) return "";
  const std::string element = result.verdict == CaseVerdict::unknown ? "error" : "failure";
  return "      <" + element + attribute("message", result.reason) + attribute("type", to_text(result.verdict)) +
         ">reason: " + xml_text(result.reason) + "\nexpected: " + xml_text(result.expected) +
         "\ninside: " + xml_text(result.inside) + "\nhost: " + xml_text(result.host) +
         "\ncontrol: " + xml_text(result.control) + "</" + element + ">\n";
}

std::string test_case(const CaseResult& result) {
  return "    <testcase" + attribute("classname", "benchsand.conformance." + result.wall) +
         attribute("name", result.id + ": " + result.attempt) + " time=\"0\">\n" + properties(result) +
         complaint(result) + "    </testcase>\n";
}

std::string about_properties(const SuiteAbout& about) {
  const std::pair<const char*, const std::string*> rows[] = {{"benchsand", &about.version},
                                                             {"engine", &about.engine},
                                                             {"delegate", &about.delegate},
                                                             {"delegate_version", &about.delegate_version},
                                                             {"delegate_sha256", &about.delegate_sha256},
                                                             {"kernel", &about.kernel},
                                                             {"cgroup", &about.cgroup},
                                                             {"profile", &about.profile},
                                                             {"profile_sha256", &about.profile_sha256},
                                                             {"probe_sha256", &about.probe_sha256},
                                                             {"cases_sha256", &about.cases_sha256}};
  std::string text = "    <properties>\n";
  for (const auto& [name, value] : rows) text += "      " + property(name, *value) + "\n";
  return text + "    </properties>\n";
}

}  // namespace

std::string report_junit(const SuiteReport& report) {
  std::size_t failed = 0, tests = report.cases.size();
  for (const auto& result : report.cases)
    if (!passes(result.verdict) && result.verdict != CaseVerdict::unknown) ++failed;
  std::size_t errors = count(report, CaseVerdict::unknown);
  std::string cases;
  for (const auto& result : report.cases) cases += test_case(result);
  if (report.cases.empty()) {
    // A suite without tests is green in every viewer.
    tests = errors = 1;
    cases = std::string("    <testcase classname=\"benchsand.conformance\" name=\"suite\" time=\"0\">\n") +
            "      <error message=\"" + kNoAttempt + "\" type=\"UNKNOWN\"/>\n    </testcase>\n";
  }
  const std::string counts = " tests=\"" + std::to_string(tests) + "\" failures=\"" + std::to_string(failed) +
                             "\" errors=\"" + std::to_string(errors) + "\" skipped=\"0\" time=\"" +
                             in_seconds(report.about.duration_us) + "\"";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"benchsand conformance\"" + counts +
         ">\n  <testsuite" + attribute("name", "benchsand conformance " + report.about.engine) +
         attribute("timestamp", report.about.created) + counts + ">\n" + about_properties(report.about) + cases +
         "  </testsuite>\n</testsuites>\n";
}

}  // namespace benchsand::conformance
