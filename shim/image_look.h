// Looks over an unpacked image, for a bounded time, for what oci/image_lint knows.
#pragma once

#include "oci/image_lint.h"
#include "shim/sys.h"

namespace benchsand {

inline constexpr std::uint64_t kLookWithinUs = 10'000'000;

// What cannot be read is passed over: these are notices, no evidence.
LintFindings look_over_image(const Fd& root, std::uint64_t within_us = kLookWithinUs);

}  // namespace benchsand
