// A table for a terminal: columns as wide as what stands in them, two spaces between.
#pragma once

#include <string>
#include <vector>

namespace benchsand {

// The first row is the heading. Every row has as many cells as it; the last is not filled up.
std::string columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace benchsand
