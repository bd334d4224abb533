#include "oci/timeline.h"

namespace benchsand {

void Timeline::add(const Sample& sample) {
  samples_.push_back(sample);
  if (samples_.size() < kMostSamples) return;
  // The second, fourth, …: what stays is what the doubled interval would have taken.
  for (std::size_t i = 0; i < samples_.size() / 2; ++i) samples_[i] = samples_[2 * i + 1];
  samples_.resize(samples_.size() / 2);
  interval_us_ *= 2;
}

nlohmann::json Timeline::json() const {
  nlohmann::json samples = nlohmann::json::array();
  for (const auto& sample : samples_)
    samples.push_back({{"at_us", sample.at_us},
                       {"memory_bytes", sample.memory_bytes},
                       {"cpu_us", sample.cpu_us},
                       {"tasks", sample.tasks},
                       {"output_bytes", sample.output_bytes},
                       {"refusals", sample.refusals}});
  return {{"interval_us", interval_us_}, {"samples", std::move(samples)}, {"unread", unread_}};
}

}  // namespace benchsand
