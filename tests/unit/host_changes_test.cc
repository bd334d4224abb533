#include "oci/host_changes.h"

#include <doctest/doctest.h>

using namespace benchsand;

namespace {

constexpr std::uint64_t kMiB = 1 << 20, kSecond = 1'000'000;

HostState before() {
  HostState state;
  state.oom_kills = 40;
  state.pages_swapped_in = 7;
  state.pages_swapped_out = 9;
  state.cpu_us = 1000 * kSecond;
  state.pressure = HostPressure{50 * kSecond, 60 * kSecond, 70 * kSecond};
  state.file_systems = {{"/srv/results", 500 * kMiB, 50000}, {"/srv/rootfs", 100 * kMiB, 10000}};
  return state;
}

// A run of ten seconds, with one processor used for eight of them.
RunShare run() {
  RunShare share;
  share.wall_us = 10 * kSecond;
  share.cpu_us = 8 * kSecond;
  return share;
}

struct Case {
  const char* what;
  void (*change)(HostState& after, RunShare& run);
  std::vector<std::string> notices;
};

}  // namespace

TEST_CASE("what changed on the host: the run's doing is no notice, somebody else's is one") {
  const std::string swap = " while the run ran, none of them the run's; its timing may be off";
  const std::string off = " of the time that the run took; its timing may be off";
  const std::vector<Case> cases = {
      {"nothing", [](HostState&, RunShare&) {}, {}},
      {"the run's own kills",
       [](HostState& a, RunShare& r) {
         a.oom_kills += 4;
         r.oom_kills = 4;
       },
       {}},
      {"one kill more than the run's",
       [](HostState& a, RunShare& r) {
         a.oom_kills += 5;
         r.oom_kills = 4;
       },
       {"host: 1 process outside the run killed for memory while it ran"}},
      {"kills of others alone",
       [](HostState& a, RunShare&) { a.oom_kills += 3; },
       {"host: 3 processes outside the run killed for memory while it ran"}},
      {"the run's kills not yet in the host's counter", [](HostState&, RunShare& r) { r.oom_kills = 1; }, {}},
      {"swapping",
       [](HostState& a, RunShare&) {
         a.pages_swapped_out += 2;
         a.pages_swapped_in += 1;
       },
       {"host: 2 pages swapped out and 1 page in" + swap}},
      {"space within the noise", [](HostState& a, RunShare&) { a.file_systems[0].free_bytes -= 16 * kMiB; }, {}},
      {"space beyond it",
       [](HostState& a, RunShare&) { a.file_systems[0].free_bytes -= 16 * kMiB + 4096; },
       {"host: the file system of /srv/results lost 16 MiB while the run ran, of which benchsand wrote 0 MiB"}},
      {"what benchsand itself wrote",
       [](HostState& a, RunShare& r) {
         a.file_systems[0].free_bytes -= 70 * kMiB;
         r.kept_bytes = 64 * kMiB;
       },
       {}},
      {"more than benchsand wrote",
       [](HostState& a, RunShare& r) {
         a.file_systems[1].free_bytes -= 90 * kMiB;
         r.kept_bytes = 64 * kMiB;
       },
       {"host: the file system of /srv/rootfs lost 90 MiB while the run ran, of which benchsand wrote 64 MiB"}},
      {"space that came free", [](HostState& a, RunShare&) { a.file_systems[0].free_bytes += 90 * kMiB; }, {}},
      {"inodes",
       [](HostState& a, RunShare&) {
         a.file_systems[0].free_inodes -= 1024;
         a.file_systems[1].free_inodes -= 1025;
       },
       {"host: the file system of /srv/rootfs lost 1025 inodes while the run ran, none of them the run's"}},
      {"a processor that others kept busy",
       [](HostState& a, RunShare& r) {
         a.pressure->cpu_some_us += 8 * kSecond + kPressureGrainUs;
         a.cpu_us += r.cpu_us + 12 * kSecond;
       },
       {"host: others worked and tasks waited for a processor at least 80 %" + off}},
      {"half of the time is not yet noticed",
       [](HostState& a, RunShare& r) {
         a.pressure->cpu_some_us += 5 * kSecond + kPressureGrainUs;
         a.cpu_us += r.cpu_us + 12 * kSecond;
       },
       {}},
      {"tasks of the run that waited for each other",
       [](HostState& a, RunShare& r) {
         a.pressure->cpu_some_us += 12 * kSecond;
         a.cpu_us += r.cpu_us + 5 * kSecond;
       },
       {}},
      {"a run that was throttled",
       [](HostState& a, RunShare& r) {
         a.pressure->cpu_some_us += 8 * kSecond + kPressureGrainUs;
         a.cpu_us += r.cpu_us + 12 * kSecond;
         r.throttled_us = 4 * kSecond;
       },
       {}},
      {"memory",
       [](HostState& a, RunShare&) { a.pressure->memory_full_us += 2 * kSecond + kPressureGrainUs; },
       {"host: all tasks stood still for memory at least 20 %" + off}},
      {"memory, a tenth",
       [](HostState& a, RunShare&) { a.pressure->memory_full_us += kSecond + kPressureGrainUs; },
       {}},
      {"memory, of a run near its own limit",
       [](HostState& a, RunShare& r) {
         a.pressure->memory_full_us += 9 * kSecond;
         r.near_memory_limit = true;
       },
       {}},
      {"input and output",
       [](HostState& a, RunShare&) { a.pressure->io_full_us += 3 * kSecond + kPressureGrainUs; },
       {"host: all tasks stood still for input and output at least 30 %" + off}},
      {"pressure of before a short run",
       [](HostState& a, RunShare& r) {
         r.wall_us = 20'000;
         a.pressure->io_full_us += 2 * kSecond;
         a.pressure->memory_full_us += 2 * kSecond;
         a.pressure->cpu_some_us += 2 * kSecond;
         a.cpu_us += 4 * kSecond;
       },
       {}},
      {"a run without a time",
       [](HostState& a, RunShare& r) { r.wall_us = 0, a.pressure->io_full_us += 9 * kSecond; },
       {}},
      {"a kernel without pressure", [](HostState& a, RunShare&) { a.pressure.reset(); }, {}},
      {"all at once",
       [](HostState& a, RunShare&) {
         a.oom_kills += 1;
         a.pages_swapped_in += 5;
         a.file_systems[0].free_bytes = 0;
         a.pressure->io_full_us += 9 * kSecond + kPressureGrainUs;
       },
       {"host: 1 process outside the run killed for memory while it ran",
        "host: 0 pages swapped out and 5 pages in" + swap,
        "host: the file system of /srv/results lost 500 MiB while the run ran, of which benchsand wrote 0 MiB",
        "host: all tasks stood still for input and output at least 90 %" + off}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.what);
    auto after = before();
    auto share = run();
    c.change(after, share);
    CHECK(host_notices(before(), after, share) == c.notices);
  }
}
