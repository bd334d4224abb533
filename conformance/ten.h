// The ten checks, by the numbers that people quote.
#pragma once

#include <array>

namespace benchsand::conformance {

inline constexpr unsigned kChecks = 10;

struct TenCheck {
  unsigned number;  // 1 to kChecks
  const char* title;
};
extern const std::array<TenCheck, kChecks> kTenChecks;

}  // namespace benchsand::conformance
