// docs/claims.md: what benchsand claims, generated from the cases, so that no claim is without a check and no check without a control.
#pragma once

#include <string>
#include <vector>

#include "conformance/case.h"

namespace benchsand::conformance {

std::string claims_page(const std::vector<Case>& cases);

}  // namespace benchsand::conformance
