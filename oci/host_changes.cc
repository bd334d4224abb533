#include "oci/host_changes.h"

namespace benchsand {

namespace {

std::uint64_t beyond(std::uint64_t value, std::uint64_t other) {
  return value > other ? value - other : 0;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return std::to_string(part * 100 / whole) + " %";
}

std::string counted(std::uint64_t number, const std::string& one) {
  return std::to_string(number) + " " + one + (number == 1 ? "" : "s");
}

using Notices = std::vector<std::string>;

// An out-of-memory kill in a cgroup counts for the host too; what is beyond the run's own was somebody else's.
void note_kills(const HostState& before, const HostState& after, const RunShare& run, Notices& notices) {
  const std::uint64_t others = beyond(beyond(after.oom_kills, before.oom_kills), run.oom_kills);
  if (others > 0)
    notices.push_back("host: " + std::to_string(others) + (others == 1 ? " process" : " processes") +
                      " outside the run killed for memory while it ran");
}

// The run's own swap is pinned to none, and the peak is judged.
void note_swap(const HostState& before, const HostState& after, Notices& notices) {
  const std::uint64_t in = beyond(after.pages_swapped_in, before.pages_swapped_in);
  const std::uint64_t out = beyond(after.pages_swapped_out, before.pages_swapped_out);
  if (in + out > 0)
    notices.push_back("host: " + counted(out, "page") + " swapped out and " + counted(in, "page") +
                      " in while the run ran, none of them the run's; its timing may be off");
}

// That the run wrote nothing to a block device is a wall of its own.
void note_space(const FileSystemSpace& before, const FileSystemSpace& after, const RunShare& run, Notices& notices) {
  const std::uint64_t bytes = beyond(before.free_bytes, after.free_bytes);
  if (bytes > run.kept_bytes && bytes - run.kept_bytes > kSpaceNoticed)
    notices.push_back("host: the file system of " + before.path + " lost " + std::to_string(bytes >> 20) +
                      " MiB while the run ran, of which benchsand wrote " + std::to_string(run.kept_bytes >> 20) +
                      " MiB");
  const std::uint64_t inodes = beyond(before.free_inodes, after.free_inodes);
  if (inodes > kInodesNoticed)
    notices.push_back("host: the file system of " + before.path + " lost " + std::to_string(inodes) +
                      " inodes while the run ran, none of them the run's");
}

void note_stall(const std::string& what, std::uint64_t stalled_us, std::uint64_t wall_us, std::uint64_t share,
                Notices& notices) {
  const std::uint64_t surely = beyond(stalled_us, kPressureGrainUs);
  if (wall_us > 0 && surely * 100 > wall_us * share)
    notices.push_back("host: " + what + " at least " + percent(surely, wall_us) +
                      " of the time that the run took; its timing may be off");
}

// A run that is throttled, or whose own tasks wait for each other, makes pressure too. So processor pressure is somebody
// else's only where others used half a processor all the while; and memory pressure is the run's own near its limit.
void note_pressure(const HostState& before, const HostState& after, const RunShare& run, Notices& notices) {
  if (!before.pressure || !after.pressure) return;
  const HostPressure &first = *before.pressure, &last = *after.pressure;
  const std::uint64_t others_us = beyond(beyond(after.cpu_us, before.cpu_us), run.cpu_us);
  if (others_us > run.wall_us / 2)
    note_stall("others worked and tasks waited for a processor",
               beyond(beyond(last.cpu_some_us, first.cpu_some_us), run.throttled_us), run.wall_us, 50, notices);
  if (!run.near_memory_limit)
    note_stall("all tasks stood still for memory", beyond(last.memory_full_us, first.memory_full_us), run.wall_us, 10,
               notices);
  note_stall("all tasks stood still for input and output", beyond(last.io_full_us, first.io_full_us), run.wall_us, 10,
             notices);
}

}  // namespace

std::vector<std::string> host_notices(const HostState& before, const HostState& after, const RunShare& run) {
  Notices notices;
  note_kills(before, after, run, notices);
  note_swap(before, after, notices);
  for (std::size_t i = 0; i < before.file_systems.size() && i < after.file_systems.size(); ++i)
    note_space(before.file_systems[i], after.file_systems[i], run, notices);
  note_pressure(before, after, run, notices);
  return notices;
}

}  // namespace benchsand
