// docs/comparison.md: several reports of one suite beside each other. Pure.
#pragma once

#include <string>
#include <vector>

#include "conformance/suite_report.h"
#include "oci/result.h"

namespace benchsand::conformance {

// Kind usage: they are not of the same probe and the same cases, and so nothing to compare.
Result<std::string> comparison_page(const std::vector<SuiteReport>& reports);

}  // namespace benchsand::conformance
