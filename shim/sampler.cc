#include "shim/sampler.h"

namespace benchsand {

Result<void> Sampler::open() {
  if (!memory_) memory_ = TRY(cgroup_.meter("memory", "memory.usage_in_bytes", "memory.current"));
  if (!tasks_) tasks_ = TRY(cgroup_.meter("pids", "pids.current", "pids.current"));
  return {};
}

Result<Sample> Sampler::read(std::uint64_t at_us, std::uint64_t cpu_baseline_us) {
  TRY_VOID(open());
  Sample sample;
  sample.at_us = at_us;
  sample.memory_bytes = TRY(memory_->read());
  const std::uint64_t cpu_us = TRY(cgroup_.cpu_usage_us());
  if (cpu_us < cpu_baseline_us) return fault("read cpu.stat: usage_usec went backwards");
  sample.cpu_us = cpu_us - cpu_baseline_us;
  sample.tasks = TRY(tasks_->read());
  sample.output_bytes = TRY(output_.bytes_used());
  return sample;
}

void Sampler::sample(std::uint64_t at_us, std::uint64_t cpu_baseline_us, std::uint64_t refusals) {
  auto sample = read(at_us, cpu_baseline_us);
  if (!sample) return timeline_.could_not_read();
  sample->refusals = refusals;
  timeline_.add(*sample);
}

}  // namespace benchsand
