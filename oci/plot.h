// The timeline of a record, drawn for a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace benchsand {

struct PlotStyle {
  std::size_t width = 80;  // columns; at least 40 are used
  bool ascii = false;      // for terminals that show no braille
};

// A chart a line of numbers, or one line that says why there is none. Throws on what is no record of ours.
std::string plot(const nlohmann::json& record, const PlotStyle& style);

}  // namespace benchsand
