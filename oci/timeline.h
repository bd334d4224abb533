// What a run used while it ran: samples at an interval, so few that every run can keep them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace benchsand {

struct Sample {
  std::uint64_t at_us = 0;  // since the door opened
  std::uint64_t memory_bytes = 0;
  std::uint64_t cpu_us = 0;  // since the door opened, over all processes
  std::uint64_t tasks = 0;
  std::uint64_t output_bytes = 0;
  std::uint64_t refusals = 0;  // calls in the ledger so far
};

// What a profile may ask for. Shorter, and the looking would cost the candidate time; longer, and nothing is seen.
inline constexpr std::uint64_t kShortestIntervalUs = 10'000;
inline constexpr std::uint64_t kLongestIntervalUs = 10'000'000;

class Timeline {
 public:
  // An hour at 10 ms would be 360,000 samples. When this many are there, every second one goes and the interval doubles.
  static constexpr std::size_t kMostSamples = 600;

  explicit Timeline(std::uint64_t interval_us) : interval_us_(interval_us) {}

  void add(const Sample& sample);
  void could_not_read() { ++unread_; }  // left out, and counted: a sample is never invented
  std::uint64_t interval_us() const { return interval_us_; }
  const std::vector<Sample>& samples() const { return samples_; }
  nlohmann::json json() const;  // as in the record

 private:
  std::uint64_t interval_us_;
  std::vector<Sample> samples_;
  std::uint64_t unread_ = 0;
};

}  // namespace benchsand
