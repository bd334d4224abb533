#include "oci/series.h"

#include <algorithm>

#include "oci/units.h"

namespace benchsand {

using nlohmann::json;

namespace {

const json* timeline_of(const json& record) {
  const auto found = record.find("timeline");
  return found == record.end() || !found->is_object() ? nullptr : &*found;
}

// 1, 2 or 5 times a power of ten (of 1024 for bytes, with 1, 2, 4, … between), not below `value`.
std::uint64_t round_top(std::uint64_t value, Unit unit) {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 62;
  std::uint64_t top = 1;
  if (unit == Unit::bytes) {
    while (top < value && top < kLargest) top *= 2;
    return top;
  }
  for (int step = 0; top < value && top < kLargest / 10; ++step) top = step % 3 == 1 ? top / 2 * 5 : top * 2;
  return top;
}

Series series_of(const json& samples, const char* key, std::string name, Unit unit,
                 std::optional<std::uint64_t> limit) {
  Series series{std::move(name), unit, limit, {}, 1, false};
  std::uint64_t most = 1;
  for (const auto& sample : samples) {
    const auto value = sample.at(key).get<std::uint64_t>();
    series.points.emplace_back(sample.at("at_us").get<std::uint64_t>(), value);
    most = std::max(most, value);
  }
  series.limit_on_scale = limit && most >= *limit / 4;
  series.top = series.limit_on_scale ? std::max(most, *limit) : round_top(most, unit);
  return series;
}

}  // namespace

std::vector<Series> timeline_series(const json& record) {
  const json* timeline = timeline_of(record);
  if (!timeline || timeline->at("samples").empty()) return {};
  const json &samples = timeline->at("samples"), &limits = record.at("policy").at("limits");
  const auto limit = [&](const char* name) { return limits.at(name).get<std::uint64_t>(); };
  std::vector<Series> all = {
      series_of(samples, "memory_bytes", "memory", Unit::bytes, limit("memory_bytes")),
      series_of(samples, "cpu_us", "CPU time", Unit::duration_us, limit("cpu_time_us")),
      series_of(samples, "tasks", "tasks", Unit::count, limit("processes")),
      series_of(samples, "output_bytes", "output", Unit::bytes, limit("disk_bytes")),
  };
  if (samples.back().at("refusals") != 0)
    all.push_back(series_of(samples, "refusals", "refused calls", Unit::count, std::nullopt));
  return all;
}

std::string why_no_samples(const json& record) {
  const json* timeline = timeline_of(record);
  if (!timeline && record.at("end").at("cause") == "not-started") return "no timeline: the candidate never started";
  if (!timeline) return "no timeline: the profile takes no samples (timeline: none)";
  if (timeline->at("unread") != 0) return "no timeline: none of its samples could be read";
  return "no timeline: the run ended before its first sample, which was due after " +
         format_quantity(timeline->at("interval_us").get<std::uint64_t>(), Unit::duration_us);
}

std::uint64_t timeline_end_us(const json& record) {
  std::uint64_t end = 1;
  if (const json* timeline = timeline_of(record); timeline && !timeline->at("samples").empty())
    end = std::max(end, timeline->at("samples").back().at("at_us").get<std::uint64_t>());
  const json& spent = record.at("evidence").at("spent");
  if (spent.contains("wall-time") && spent.at("wall-time").contains("used_us")) {
    const json& used = spent.at("wall-time").at("used_us").at("observed");
    if (used.is_number_unsigned()) end = std::max(end, used.get<std::uint64_t>());
  }
  return end;
}

std::string rough(std::uint64_t value, Unit unit) {
  struct Scale {
    std::uint64_t size;
    const char* suffix;
  };
  static constexpr Scale kBytes[] = {{1U << 30U, "GiB"}, {1U << 20U, "MiB"}, {1U << 10U, "KiB"}, {1, "B"}};
  static constexpr Scale kTimes[] = {
      {3'600'000'000, "h"}, {60'000'000, "m"}, {1'000'000, "s"}, {1'000, "ms"}, {1, "us"}};
  if (unit == Unit::count || unit == Unit::milli) return format_quantity(value, unit);
  if (value == 0) return "0";
  const bool bytes = unit == Unit::bytes;
  const Scale* scale = bytes ? std::begin(kBytes) : std::begin(kTimes);
  while (value < scale->size) ++scale;
  const std::uint64_t whole = value / scale->size;
  const std::uint64_t tenth = value % scale->size * 10 / scale->size;
  const bool plain = whole >= 100 || tenth == 0;
  return std::to_string(whole) + (plain ? "" : "." + std::to_string(tenth)) + scale->suffix;
}

}  // namespace benchsand
