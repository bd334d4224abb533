#include "oci/timeline.h"

#include <doctest/doctest.h>

using namespace benchsand;

namespace {

// What the supervisor does: a sample whenever the interval has passed.
Timeline run_of(std::uint64_t interval_us, std::uint64_t length_us) {
  Timeline timeline(interval_us);
  for (std::uint64_t at = timeline.interval_us(); at <= length_us; at += timeline.interval_us())
    timeline.add({at, 2 * at, at / 2, 3, 4, 5});
  return timeline;
}

}  // namespace

TEST_CASE("a timeline of any length holds few samples, evenly spread, to its end") {
  const std::uint64_t second = 1'000'000;
  struct Row {
    std::uint64_t length_us, interval_us;
  };
  const Row rows[] = {{second, 100'000},          {59 * second, 100'000},        {60 * second, 200'000},
                      {119 * second, 200'000},    {120 * second, 400'000},       {600 * second, 1'600'000},
                      {3600 * second, 6'400'000}, {86'400 * second, 204'800'000}};
  for (const auto& row : rows) {
    CAPTURE(row.length_us);
    const Timeline timeline = run_of(100'000, row.length_us);
    const auto& samples = timeline.samples();
    CHECK(timeline.interval_us() == row.interval_us);
    CHECK(samples.size() == row.length_us / row.interval_us);
    CHECK(samples.size() < Timeline::kMostSamples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      CHECK(samples[i].at_us == (i + 1) * row.interval_us);
      CHECK(samples[i].memory_bytes == 2 * samples[i].at_us);
    }
  }
}

TEST_CASE("a timeline in the record: what could not be read is counted and not there") {
  Timeline timeline(100'000);
  CHECK(timeline.json() == nlohmann::json::parse(R"({"interval_us": 100000, "samples": [], "unread": 0})"));
  timeline.add({100'001, 4096, 17, 2, 8192, 5});
  timeline.could_not_read();
  CHECK(timeline.json() == nlohmann::json::parse(R"({"interval_us": 100000, "unread": 1, "samples": [
      {"at_us": 100001, "memory_bytes": 4096, "cpu_us": 17, "tasks": 2, "output_bytes": 8192, "refusals": 5}]})"));
}
