// Takes the samples of a timeline. Each costs the run nothing but a few reads of files that are held open.
#pragma once

#include "oci/timeline.h"
#include "shim/host_cgroup.h"
#include "shim/output_fs.h"

namespace benchsand {

class Sampler {
 public:
  Sampler(std::uint64_t interval_us, const RunCgroup& cgroup, const OutputFs& output)
      : timeline_(interval_us), cgroup_(cgroup), output_(output) {}

  // `cpu_baseline_us`: what the delegate had used before the door opened. `refusals`: as the ledger counts them.
  void sample(std::uint64_t at_us, std::uint64_t cpu_baseline_us, std::uint64_t refusals);
  const Timeline& timeline() const { return timeline_; }

 private:
  Result<Sample> read(std::uint64_t at_us, std::uint64_t cpu_baseline_us);
  Result<void> open();

  Timeline timeline_;
  const RunCgroup& cgroup_;
  const OutputFs& output_;
  std::optional<Meter> memory_, tasks_;  // opened for the first sample: most runs end before it
};

}  // namespace benchsand
