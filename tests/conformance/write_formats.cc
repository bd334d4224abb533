// Writes reports of tests/unit/sample_suite.h into a folder, in every format, for readers that are not ours (formats.py).
// usage: write-formats DIR
#include <fstream>
#include <iostream>
#include <utility>
#include <vector>

#include "conformance/baseline.h"
#include "conformance/report_table.h"
#include "conformance/reports.h"
#include "tests/unit/sample_suite.h"

using namespace benchsand::conformance;

namespace suite = sample::suite;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write-formats DIR\n";
    return 2;
  }
  std::vector<std::pair<std::string, SuiteReport>> reports = {
      {"empty", suite::report({})}, {"good", suite::good()}, {"every", suite::every_verdict()}};
  for (const auto verdict : kCaseVerdicts)
    reports.emplace_back(std::string("hostile-") + to_text(verdict), suite::hostile(verdict));
  const auto write = [&](const std::string& name, const std::string& text) {
    return static_cast<bool>(std::ofstream(std::string(argv[1]) + "/" + name) << text << std::flush);
  };
  bool good = true;
  for (const auto& [name, report] : reports) {
    for (const auto& format : report_formats()) good = write(name + "." + format.name, format.write(report)) && good;
    good = write(name + ".table", report_table(report, 0, false)) && good;
    good = write(name + ".drift", drift_text(drift_between(suite::good(), report))) && good;
  }
  return good ? 0 : 1;
}
