#include "conformance/reports.h"
#include "oci/yaml_tree.h"

namespace benchsand::conformance {

const std::vector<ReportFormat>& report_formats() {
  static const std::vector<ReportFormat> formats = {
      {"json", report_json},
      {"junit", report_junit},
      {"tap", report_tap},
      {"markdown", [](const SuiteReport& report) { return report_markdown(report); }},
      {"sarif", [](const SuiteReport& report) { return report_sarif(report); }},
      {"github", report_annotations},
      {"metrics", report_metrics}};
  return formats;
}

Result<ReportFormat> find_report_format(const std::string& name) {
  std::string names;
  for (const auto& format : report_formats()) {
    if (name == format.name) return format;
    names += std::string(names.empty() ? "" : ", ") + format.name;
  }
  return usage("format " + in_quotes(name) + ": there are table, " + names);
}

}  // namespace benchsand::conformance
