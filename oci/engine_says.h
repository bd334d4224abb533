// What an engine says of a container, beside what the host has seen of it. The engine's word is never evidence; where it differs
// from the kernel's, something is not what it seems, and the run has no score.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oci/engine_endpoint.h"
#include "oci/verdict.h"

namespace benchsand {

struct EngineSays {
  nlohmann::json created;  // inspect, before the start
  nlohmann::json ended;    // inspect, after the end
  // It sees no swap limit on its host, and says that it asks for none (Docker in the root cgroup of cgroup v2). What the kernel
  // has is another matter, and the wall's.
  bool asks_for_no_swap_limit = false;
};

// Each difference breaks its wall and names both values. A key that the engine does not have is a difference too. `record` is
// the monitor's.
std::vector<Failure> disagreements(ApiKind kind, const std::string& container, const EngineSays& says,
                                   const nlohmann::json& record);

// While it runs: the process that the engine takes for the container's init. Nothing where the engine says that it has ended.
std::vector<Failure> pid_disagreement(ApiKind kind, const nlohmann::json& inspect, std::uint64_t pid);
bool is_running(const nlohmann::json& inspect);

// The record without its score: what was found after it was judged. `fault` (may be empty) is ours or the engine's. One of the
// two is not empty.
nlohmann::json unscored(nlohmann::json record, std::vector<Failure> failures, const std::string& fault);
nlohmann::json with_notices(nlohmann::json record, const std::vector<std::string>& notices);

}  // namespace benchsand
