// The host's own numbers, from the kernel's files: they can be read, and they move with what is done.
#include "shim/host_baseline.h"

#include <doctest/doctest.h>

#include <vector>

#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

TEST_CASE("the host's state is read whole, and never goes backwards") {
  const auto host = CgroupHost::find();
  REQUIRE(host);
  const TempFolder folder;
  const auto first = sys::open_directory(sys::kHere, folder.path());
  const auto again = sys::open_directory(sys::kHere, folder.path());
  const auto proc = sys::open_directory(sys::kHere, "/proc");
  REQUIRE((first && again && proc));
  HostBaseline baseline(*host);
  REQUIRE(baseline.watch(*first, "first"));
  REQUIRE(baseline.watch(*again, "the same file system again"));
  REQUIRE(baseline.watch(*proc, "another"));

  const auto before = baseline.read();
  if (!before) FAIL(before.error().message);
  REQUIRE(before->file_systems.size() == 2);
  CHECK(before->file_systems[0].path == "first");
  CHECK(before->file_systems[0].free_bytes > 0);
  CHECK(before->file_systems[1].path == "another");
  CHECK(before->cpu_us > 0);
  CHECK(before->pressure.has_value() == std::filesystem::exists("/proc/pressure/cpu"));

  std::vector<char> block(1 << 20, 'x');
  std::ofstream file(folder.path("big"), std::ios::binary);
  for (int i = 0; i < 64; ++i) file.write(block.data(), static_cast<std::streamsize>(block.size()));
  file.close();
  const auto after = baseline.read();
  REQUIRE(after);
  CHECK(after->oom_kills >= before->oom_kills);
  CHECK(after->cpu_us > before->cpu_us);
  // Others write and delete on this file system too.
  CHECK(after->file_systems[0].free_bytes + (std::uint64_t{32} << 20) < before->file_systems[0].free_bytes);
}

TEST_CASE("a descriptor that names no file system is an error that says which") {
  const auto host = CgroupHost::find();
  REQUIRE(host);
  HostBaseline baseline(*host);
  const Fd none;
  const auto watched = baseline.watch(none, "the results");
  REQUIRE_FALSE(watched);
  CHECK(watched.error().message.find("the results") != std::string::npos);
}
