// The JSON that callers read: state, features, stats, and an example of a config.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "oci/record.h"

namespace benchsand {

// `delegate` as it was found; empty when there is none here.
nlohmann::json features_json(const std::string& profile, const std::string& profile_sha256,
                             const DelegateFacts& delegate);

// Counters of the leaf; what this host does not count stays 0, as runc has it.
struct ContainerStats {
  std::uint64_t cpu_us = 0, user_us = 0, system_us = 0, throttled_us = 0, periods = 0, throttled_periods = 0;
  std::uint64_t memory = 0, memory_limit = 0, memory_peak = 0, memory_refused = 0;
  std::uint64_t pids = 0, pids_limit = 0;
};
nlohmann::json stats_json(const std::string& id, const ContainerStats& stats);

nlohmann::json example_config_json();

}  // namespace benchsand
