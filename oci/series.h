// The timeline of a record as lines to be drawn, for a terminal (plot) and a page (html_page).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oci/limits.h"

namespace benchsand {

struct Series {
  std::string name;
  Unit unit = Unit::count;
  std::optional<std::uint64_t> limit;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> points;  // (us since the door, value), as they were sampled
  std::uint64_t top = 1;                                        // of the scale: a round number that holds every point
  bool limit_on_scale = false;  // a limit far above what was used would press the line flat
};

// Memory, CPU, tasks, output; refusals where there were any. Empty when the record has no samples.
std::vector<Series> timeline_series(const nlohmann::json& record);
std::string why_no_samples(const nlohmann::json& record);  // one line

std::uint64_t timeline_end_us(const nlohmann::json& record);  // the run's end, or the last sample if that was later

// For people: "48.2MiB", "1.5s", "32"; what comes after a tenth is cut off.
std::string rough(std::uint64_t value, Unit unit);

}  // namespace benchsand
