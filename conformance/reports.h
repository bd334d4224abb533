// A report in the formats of others. Every one of them holds text of a candidate's (CaseResult::inside, and what quotes it), and
// none lets it be anything but text (guest_text.h). None of them says that an empty report passes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "conformance/suite_report.h"
#include "oci/result.h"

namespace benchsand::conformance {

// Schema benchsand.conformance/v1, with the digest of its canonical form as a record has it (oci/record.h).
std::string report_json(const SuiteReport& report);
// And back. Kind usage: `text`, which messages call `name`, is not such a report, or was changed since.
Result<SuiteReport> parse_report(const std::string& text, const std::string& name);

std::string report_junit(const SuiteReport& report);
std::string report_tap(const SuiteReport& report);

// GitHub aborts the upload of a step's summary at 1024 KiB. Failures come first; what is cut is said.
inline constexpr std::size_t kLargestMarkdown = std::size_t{900} << 10;
std::string report_markdown(const SuiteReport& report, std::size_t most = kLargestMarkdown);

// Failures only: readers show each result as an alert, whatever its kind. GitHub shows 5000.
inline constexpr std::size_t kMostSarifResults = 5000;
std::string report_sarif(const SuiteReport& report, std::size_t most = kMostSarifResults);

// Workflow commands for the log of a step of GitHub's, which shows 10 errors and hides the rest.
inline constexpr std::size_t kMostAnnotations = 10;
std::string report_annotations(const SuiteReport& report);

// A file for node_exporter's textfile collector: the text format of Prometheus that is OpenMetrics too.
std::string report_metrics(const SuiteReport& report);

// By the names that a command line has.
struct ReportFormat {
  const char* name;
  std::string (*write)(const SuiteReport& report);
};
const std::vector<ReportFormat>& report_formats();  // of these; the table for people is in report_table.h
Result<ReportFormat> find_report_format(const std::string& name);

}  // namespace benchsand::conformance
