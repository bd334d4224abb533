#include <nlohmann/json.hpp>

#include "conformance/guest_text.h"
#include "conformance/reports.h"
#include "conformance/tally.h"

namespace benchsand::conformance {

namespace {

// In a description "#" begins a directive, and both that there are (skip, to do) turn a failed test into a good one.
std::string description(const std::string& bytes) {
  std::string text;
  for (const char c : line_text(bytes)) {
    if (c == '#' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

// A text of JSON is one of YAML.
std::string yaml_line(const char* key, const std::string& bytes) {
  return std::string("  ") + key + ": " + nlohmann::json(line_text(bytes)).dump(-1, ' ', true) + "\n";
}

std::string diagnosis(const CaseResult& result) {
  return "  ---\n" + yaml_line("verdict", to_text(result.verdict)) + yaml_line("reason", result.reason) +
         yaml_line("wall", result.wall) + yaml_line("asserts", result.asserts) +
         yaml_line("expected", result.expected) + yaml_line("inside", result.inside) + yaml_line("host", result.host) +
         yaml_line("control", result.control) + "  ...\n";
}

std::string point(const CaseResult& result, std::size_t number) {
  const bool good = passes(result.verdict);
  const bool bare = result.verdict == CaseVerdict::refused;
  return std::string(good ? "ok " : "not ok ") + std::to_string(number) + " - " + to_text(result.verdict) + " " +
         description(result.id + ": " + result.attempt) + "\n" + (bare ? "" : diagnosis(result));
}

}  // namespace

std::string report_tap(const SuiteReport& report) {
  // A plan of 1..0 would mean that the whole suite was skipped, which is good to a harness.
  if (report.cases.empty()) return std::string("TAP version 14\n1..1\nnot ok 1 - UNKNOWN suite: ") + kNoAttempt + "\n";
  std::string text = "TAP version 14\n1.." + std::to_string(report.cases.size()) + "\n";
  if (const std::string whose = whose_walls(report.about); !whose.empty())
    text += "# NOT BENCHSAND: " + line_text(whose) + "\n";
  std::size_t number = 0;
  for (const auto& result : report.cases) text += point(result, ++number);
  return text;
}

}  // namespace benchsand::conformance
