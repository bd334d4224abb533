// The limits a task may ask for. This table is the only place that names them: the task parser, the profile parser,
// decide, `benchsand limits` and docs/limits.md all walk it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace benchsand {

// Every value is decided; there is no "unset" and no "unlimited".
struct Limits {
  std::uint64_t cpu_time_us = 0;   // over all processes of the run
  std::uint64_t wall_time_us = 0;  // CLOCK_MONOTONIC, from the door to the end
  std::uint64_t memory_bytes = 0;  // memory and memory+swap alike
  std::uint64_t processes = 0;     // tasks (threads count)
  std::uint64_t disk_bytes = 0;    // size of the output tmpfs
  std::uint64_t files = 0;         // inodes of the output tmpfs
  std::uint64_t stdout_bytes = 0;  // kept; the rest is drained and counted
  std::uint64_t stderr_bytes = 0;
  std::uint64_t open_files = 0;  // RLIMIT_NOFILE, per process
  std::uint64_t cpus_milli = 0;  // thousandths of a processor (cpu.max)
  bool operator==(const Limits&) const = default;
};

enum class Unit { duration_us, bytes, count, milli };

struct LimitField {
  std::string_view name;  // key in `limits:` of a task and of a profile
  Unit unit;
  std::uint64_t Limits::*member;
  std::string_view meaning;  // one line for the limits page
};

inline constexpr std::array<LimitField, 10> kLimitFields{{
    {"cpu_time", Unit::duration_us, &Limits::cpu_time_us, "CPU time over all processes of the run; ends it"},
    {"wall_time", Unit::duration_us, &Limits::wall_time_us, "time from the door to the end; ends it"},
    {"memory", Unit::bytes, &Limits::memory_bytes,
     "memory of the cgroup, swap pinned to none; the kernel kills past it"},
    {"processes", Unit::count, &Limits::processes, "tasks, threads included; EAGAIN past it"},
    {"disk", Unit::bytes, &Limits::disk_bytes, "bytes of the output file system; ENOSPC past it"},
    {"files", Unit::count, &Limits::files, "inodes of the output file system; ENOSPC past it"},
    {"stdout", Unit::bytes, &Limits::stdout_bytes, "bytes of stdout kept; drained and counted past it"},
    {"stderr", Unit::bytes, &Limits::stderr_bytes, "bytes of stderr kept; drained and counted past it"},
    {"open_files", Unit::count, &Limits::open_files, "open descriptors of one process; EMFILE past it"},
    {"cpus", Unit::milli, &Limits::cpus_milli, "processors' worth of time per period; throttled past it"},
}};

}  // namespace benchsand
