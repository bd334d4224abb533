// What changed on the host while a run ran, and whose doing it was. What the run itself caused is judged by its walls, on
// counters of its own cgroup. What it cannot have caused breaks nothing and is a notice: somebody else was at work, and
// whoever reads times or compares runs should know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace benchsand {

struct FileSystemSpace {
  std::string path;  // by which benchsand uses it
  std::uint64_t free_bytes = 0, free_inodes = 0;
};

struct HostPressure {  // time that tasks of this host stood still, in microseconds
  std::uint64_t cpu_some_us = 0, memory_full_us = 0, io_full_us = 0;
};

struct HostState {
  std::uint64_t oom_kills = 0, pages_swapped_in = 0, pages_swapped_out = 0;
  std::uint64_t cpu_us = 0;              // used by everybody
  std::optional<HostPressure> pressure;  // absent: this kernel does not keep it
  std::vector<FileSystemSpace> file_systems;
};

// The run's own part, as its cgroup and benchsand know it.
struct RunShare {
  std::uint64_t oom_kills = 0;
  std::uint64_t wall_us = 0, cpu_us = 0, throttled_us = 0;
  std::uint64_t kept_bytes = 0;  // written by benchsand itself: stdout and stderr
  bool near_memory_limit = false;
};

// In words, one a change. Both states have the same file systems in the same order.
std::vector<std::string> host_notices(const HostState& before, const HostState& after, const RunShare& run);

// Less is the noise of any host: logs, caches, a file here and there.
inline constexpr std::uint64_t kSpaceNoticed = 16 << 20;
inline constexpr std::uint64_t kInodesNoticed = 1024;
// The kernel adds pressure up every two seconds, so this much of a difference can be from before.
inline constexpr std::uint64_t kPressureGrainUs = 2'010'000;

}  // namespace benchsand
