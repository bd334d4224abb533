// What a person reads: the ten checks, every further attempt, and once more all that failed.
#pragma once

#include <cstddef>
#include <string>

#include "conformance/suite_report.h"

namespace benchsand::conformance {

// `width` of the terminal, into which long cells are cut; 0: as wide as it gets. `colour` only on a terminal.
std::string report_table(const SuiteReport& report, std::size_t width, bool colour);

}  // namespace benchsand::conformance
