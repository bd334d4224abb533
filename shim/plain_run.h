// One run in a container that an engine's own runtime makes (oci/without_runtime.h). The story is run.cc's: what differs is who makes
// the container, and the gate that holds the candidate in place of the filter.
#pragma once

#include <string>

#include "oci/api_body.h"
#include "shim/run.h"

namespace benchsand {

// What an engine says of a container that runs. None of it is evidence; it is compared with what the host sees.
struct EngineWords {
  std::uint64_t init = 0;  // process number
  std::string cgroup_parent;
};

// The container, as its engine is asked for it. Every call has a deadline.
class PlainContainer {
 public:
  virtual ~PlainContainer() = default;
  virtual Result<void> create(const std::string& run_id, const Policy& policy, const BodyPlaces::Plain& places) = 0;
  virtual std::string cgroup() const = 0;  // its name below the parent, once it is created
  virtual Result<void> start(const Fd& stop) = 0;
  virtual Result<EngineWords> words() = 0;
  // It has ended. What the engine says of it is noted before it is removed.
  virtual Result<void> remove() = 0;
  // The record, with what the engine has said compared; it can only become one without a score.
  virtual nlohmann::json compared(nlohmann::json record) = 0;
};

// The policy is of take_plain. `engine` stands in the record in place of a delegate.
Result<RunReport> run_plain(const DelegateFacts& engine, Policy policy, const std::string& results_directory,
                            PlainContainer& container);

}  // namespace benchsand
