// A container with a terminal: a loosening by name, and what the walls then expect.
#include <doctest/doctest.h>

#include <algorithm>

#include "oci/bundle.h"
#include "oci/html_page.h"
#include "oci/record.h"
#include "oci/report.h"
#include "oci/verdict.h"
#include "sample.h"
#include "sample_record.h"

using namespace benchsand;
using nlohmann::json;

namespace {

Policy with_terminal() {
  Policy policy = sample::policy();
  take_terminal(policy);
  return policy;
}

const Rule& rule_of(const std::vector<Rule>& rules, const std::string& key) {
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.key == key; });
  REQUIRE_MESSAGE(rule != rules.end(), key);
  return *rule;
}

bool holds(const std::vector<Rule>& rules, const std::string& key, const Value& value) {
  return rule_of(rules, key).holds(value, Evidence());
}

}  // namespace

TEST_CASE("a terminal is a relaxation, once, and in the record") {
  Policy policy = with_terminal();
  take_terminal(policy);
  CHECK(policy.relaxations ==
        std::vector<std::string>{"terminal: what is written to it is neither counted nor capped"});
  CHECK(policy_json(policy)["terminal"] == true);
  CHECK(policy_json(sample::policy())["terminal"] == false);
  CHECK(policy_json(policy)["exec"] == "allow");
}

TEST_CASE("the bundle has a terminal and a devpts, and the mounts are granted") {
  const HostFacts host = sample::host(CgroupLayout::v2);
  const json with = bundle_json(with_terminal(), host, {}), without = bundle_json(sample::policy(), host, {});
  CHECK(with["process"]["terminal"] == true);
  CHECK(without["process"]["terminal"] == false);
  CHECK(with["mounts"].size() == without["mounts"].size() + 1);
  CHECK(with["mounts"][2]["destination"] == "/dev/pts");
  const auto writable = [](const Policy& policy) {
    std::string targets;
    for (const auto& mount : granted_mounts(policy))
      if (mount.writable) targets += mount.target + " ";
    return targets;
  };
  CHECK(writable(sample::policy()) == "/output ");
  CHECK(writable(with_terminal()) == "/dev/pts /dev/console /output ");
}

TEST_CASE("the walls want the streams to be the terminal, and nothing else to be writable") {
  const auto rules = wall_rules(with_terminal(), sample::host(CgroupLayout::v2));
  const auto plain = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
  for (const char* key : {"stdio.stdin", "stdio.stdout", "stdio.stderr"}) {
    CHECK(holds(rules, key, std::string("/dev/pts/0")));
    CHECK(holds(rules, key, std::string("/dev/console")));
    for (const char* other : {"pipe:[1]", "/dev/pts/1", "/dev/tty", "", "/dev/null"})
      CHECK_FALSE(holds(rules, key, std::string(other)));
    CHECK_FALSE(holds(plain, key, std::string("/dev/pts/0")));
  }
  for (const char* key : {"stdio.stdout_bytes", "stdio.stderr_bytes"}) {
    CHECK(holds(rules, key, std::string("a terminal")));
    CHECK_FALSE(holds(rules, key, std::uint64_t{7}));
    CHECK_FALSE(holds(plain, key, std::string("a terminal")));
  }
  for (const char* key : {"rootfs.writable_mounts", "rootfs.writable_mounts.end"}) {
    CHECK(holds(rules, key, std::string("/dev/console /dev/pts /output")));
    for (const char* other : {"/output", "/ /dev/pts /output /dev/console", "/dev /dev/pts /output /dev/console"})
      CHECK_FALSE(holds(rules, key, std::string(other)));
    CHECK_FALSE(holds(plain, key, std::string("/dev/console /dev/pts /output")));
  }
  CHECK(holds(rules, "privileges.devices", std::string(kAllowedDevicesOfTerminal)));
  CHECK_FALSE(holds(rules, "privileges.devices", std::string(kAllowedDevices)));
  CHECK_FALSE(holds(plain, "privileges.devices", std::string(kAllowedDevicesOfTerminal)));
}

TEST_CASE("a run with a terminal in which every wall stood is scored") {
  const auto rules = wall_rules(with_terminal(), sample::host(CgroupLayout::v2));
  const auto evidence = sample::evidence(rules);
  End end;
  end.cause = Cause::exited;
  end.exit_code = 0;
  CHECK(judge(rules, evidence, end, std::nullopt).scored);
}

TEST_CASE("no figures are shown of streams that were not counted") {
  json record = sample::record(json());
  CHECK(verdict_table(record, false).find("stdio       held    stdout ") != std::string::npos);
  CHECK(html_page(record).find("went through the terminal") == std::string::npos);
  record["policy"]["terminal"] = true;
  CHECK(verdict_table(record, false).find("stdio       held    not counted: it went through a terminal\n") !=
        std::string::npos);
  CHECK(html_page(record).find("what went through the terminal was not counted") != std::string::npos);
}
