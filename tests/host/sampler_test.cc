#include "shim/sampler.h"

#include <doctest/doctest.h>

#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

TEST_CASE("a sample that cannot be read is left out and counted") {
  const TempFolder folder;
  const Host host = host_of("crun");
  const std::string id = "r" + std::string(24, 'c');
  const auto cgroup = RunCgroup::create(host.cgroup, id);  // no delegate has made its leaf
  REQUIRE(cgroup);
  const auto output = OutputFs::create(policy_of(folder, task_text("[/bin/true]")));
  REQUIRE(output);
  Sampler sampler(100'000, *cgroup, *output);
  sampler.sample(100'000, 0, 0);
  sampler.sample(200'000, 0, 0);
  CHECK(sampler.timeline().json() == nlohmann::json::parse(R"({"interval_us": 100000, "samples": [], "unread": 2})"));
  CHECK(remove_run_cgroups(host.cgroup, id));
}
