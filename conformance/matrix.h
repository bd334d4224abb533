// Which attempts notice that a wall is gone: each wall taken down in turn, and every attempt made with and without it.
#pragma once

#include <string>

#include "conformance/suite.h"

namespace benchsand::conformance {

// A page of docs/. An error when a wall can be taken down and no attempt comes to another end.
Result<std::string> run_matrix(const SuiteRequest& request);

}  // namespace benchsand::conformance
