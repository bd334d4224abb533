// "TERM", "SIGTERM", "sigterm", "15", "RTMIN+3" -> the number.
#pragma once

#include <string>

#include "oci/result.h"

namespace benchsand {

Result<int> parse_signal(const std::string& text);  // 1 to 64

}  // namespace benchsand
