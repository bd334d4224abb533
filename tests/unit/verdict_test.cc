#include "oci/verdict.h"

#include <doctest/doctest.h>

#include <set>

#include "oci/without_runtime.h"
#include "sample.h"

using namespace benchsand;

namespace {

End exited(int code) {
  End end;
  end.cause = Cause::exited;
  end.exit_code = code;
  return end;
}

std::set<std::string> walls_of(const Verdict& verdict) {
  std::set<std::string> walls;
  for (const auto& failure : verdict.failures) walls.insert(failure.wall);
  return walls;
}

std::vector<std::pair<Policy, HostFacts>> all_kinds() {
  std::vector<std::pair<Policy, HostFacts>> kinds;
  for (const auto layout : {CgroupLayout::hybrid, CgroupLayout::v2})
    for (const auto proof : {FilterProof::dump, FilterProof::compiled}) {
      Policy policy = sample::policy();
      policy.filter_proof = proof;
      kinds.emplace_back(policy, sample::host(layout));
      policy.user_namespace = UserNamespace::host;
      policy.host_ids.reset();
      kinds.emplace_back(policy, sample::host(layout));
      policy.without_runtime = {"network", "rootfs", "privileges", "syscalls", "evidence"};
      take_plain(policy);
      kinds.emplace_back(policy, sample::host(layout));
    }
  return kinds;
}

// Of the same kind, far enough off that no bound takes it.
Value another(const Value& right) {
  if (const auto* number = std::get_if<std::uint64_t>(&right)) return *number + 1 + (1 << 30);
  return std::get<std::string>(right) + " and more";
}

}  // namespace

TEST_CASE("a run in which every wall stood is scored, and only then") {
  for (const auto& [policy, host] : all_kinds()) {
    const auto rules = wall_rules(policy, host);
    const auto evidence = sample::evidence(rules);
    const auto verdict = judge(rules, evidence, exited(0), std::nullopt);
    for (const auto& failure : verdict.failures)
      FAIL_CHECK(failure.wall << " " << failure.source << " " << failure.observed);
    CHECK(verdict.scored);
    CHECK(verdict.outcome == Outcome::succeeded);
    CHECK(verdict.tier == "reproducible");
  }
}

TEST_CASE("every observation withheld breaks its wall and no other is blamed for it") {
  for (const auto& [policy, host] : all_kinds()) {
    const auto rules = wall_rules(policy, host);
    for (const auto& rule : rules) {
      CAPTURE(rule.key);
      auto evidence = sample::evidence(rules);
      evidence.remove(rule.key);
      for (const bool claimed : {false, true}) {
        const auto verdict =
            judge(rules, evidence, exited(0), claimed ? std::optional(AttestationClaim{"sev_guest"}) : std::nullopt);
        CHECK_FALSE(verdict.scored);
        CHECK(verdict.outcome == Outcome::refused);
        CHECK_FALSE(verdict.tier.has_value());
        CHECK(walls_of(verdict) == std::set<std::string>{rule.wall});
      }
    }
  }
}

TEST_CASE("every observation that could not be read breaks its wall, and the failure carries reason and source") {
  const auto rules = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
  for (const auto& rule : rules) {
    CAPTURE(rule.key);
    auto evidence = sample::evidence(rules);
    evidence.missing(rule.key, "read /x: Permission denied", "/x");
    const auto verdict = judge(rules, evidence, exited(0), std::nullopt);
    CHECK_FALSE(verdict.scored);
    bool found = false;
    for (const auto& f : verdict.failures)
      found |= f.wall == rule.wall && f.source == "/x" && f.observed == "missing: read /x: Permission denied" &&
               f.expected == rule.expected;
    CHECK(found);
  }
}

TEST_CASE(
    "without benchsand's runtime only what cannot be observed then is forgiven, and only where the profile says so") {
  for (const auto layout : {CgroupLayout::hybrid, CgroupLayout::v2})
    for (const bool allowed : {false, true}) {
      Policy policy = sample::policy();
      if (allowed) policy.without_runtime = unobservable_walls();
      take_plain(policy);
      const auto rules = wall_rules(policy, sample::host(layout));
      for (const auto& rule : rules) {
        CAPTURE(rule.key);
        const auto& keys = unobservable_keys();
        auto evidence = sample::evidence(rules);
        evidence.missing(rule.key, kNotWithoutRuntime, "the engine");
        const bool forgiven = allowed && std::find(keys.begin(), keys.end(), rule.key) != keys.end();
        // What is compared with it is missing as well.
        if (rule.key == "rootfs.source_identity") evidence.missing("rootfs.identity", kNotWithoutRuntime, "the engine");
        if (rule.key == "evidence.config_sha256")
          evidence.missing("evidence.config_sha256.end", kNotWithoutRuntime, "the engine");
        CHECK(judge(rules, evidence, exited(0), std::nullopt).scored == forgiven);
        evidence.missing(rule.key, "read /x: Permission denied", "/x");
        CHECK_FALSE(judge(rules, evidence, exited(0), std::nullopt).scored);
      }
    }
}

TEST_CASE("of a wall that the profile does not name nothing is forgiven") {
  Policy policy = sample::policy();
  policy.without_runtime = {"rootfs"};
  take_plain(policy);
  const auto rules = wall_rules(policy, sample::host(CgroupLayout::v2));
  auto evidence = sample::evidence(rules);
  for (const auto& key : unobservable_keys()) evidence.missing(key, kNotWithoutRuntime, "the engine");
  CHECK(walls_of(judge(rules, evidence, exited(0), std::nullopt)) ==
        std::set<std::string>{"network", "privileges", "syscalls", "evidence"});
  policy.plain = false;
  CHECK(walls_of(judge(wall_rules(policy, sample::host(CgroupLayout::v2)), evidence, exited(0), std::nullopt))
            .contains("rootfs"));
}

TEST_CASE("every observation of another kind breaks its wall") {
  for (const auto& [policy, host] : all_kinds()) {
    const auto rules = wall_rules(policy, host);
    for (const auto& rule : rules) {
      CAPTURE(rule.key);
      auto evidence = sample::evidence(rules);
      const Value right = *evidence.find(rule.key)->value();
      const Value other =
          std::holds_alternative<std::uint64_t>(right) ? Value(std::string("garbage")) : Value(std::uint64_t{1});
      evidence.replace(rule.key, {other, "falsified"});
      const auto verdict = judge(rules, evidence, exited(0), std::nullopt);
      CHECK_FALSE(verdict.scored);
      CHECK(walls_of(verdict).contains(rule.wall));
    }
  }
}

TEST_CASE("every observation with another value breaks its wall, except counts that are only reported") {
  // These are reported, not judged: any number is right. A new rule that accepts everything has to be put here by hand.
  const std::set<std::string> reported = {
      "network.host_namespace", "network.namespace",        "network.ipv4_no_route",
      "network.ipv6_no_route",  "network.refused_sockets",  "syscalls.refused_calls",
      "memory.oom_kills",       "processes.refused",        "processes.peak_at_door",
      "processes.tasks_seen",   "evidence.execs",           "cpu-time.throttled_periods",
      "cpu-time.throttled_us",  "wall-time.used_us",        "stdio.stdout_bytes",
      "stdio.stderr_bytes",     "syscalls.refused",         "syscalls.of",
      "namespaces.host_mnt",    "namespaces.mnt",           "namespaces.host_pid",
      "namespaces.pid",         "namespaces.host_ipc",      "namespaces.ipc",
      "namespaces.host_uts",    "namespaces.uts",           "namespaces.host_cgroup",
      "namespaces.cgroup",      "teardown.processes_killed"};
  for (const auto& [policy, host] : all_kinds()) {
    const auto rules = wall_rules(policy, host);
    for (const auto& rule : rules) {
      CAPTURE(rule.key);
      auto evidence = sample::evidence(rules);
      const Value right = *evidence.find(rule.key)->value();
      evidence.replace(rule.key, {another(right), "falsified"});
      const auto verdict = judge(rules, evidence, exited(0), std::nullopt);
      CHECK(verdict.scored == reported.contains(rule.key));
      CHECK(walls_of(verdict).contains(rule.wall) != verdict.scored);
    }
  }
}

TEST_CASE("all walls broken at once are all named") {
  const auto rules = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
  for (const bool claimed : {false, true}) {
    const auto verdict =
        judge(rules, Evidence(), exited(0), claimed ? std::optional(AttestationClaim{"tdx_guest"}) : std::nullopt);
    CHECK_FALSE(verdict.scored);
    CHECK_FALSE(verdict.tier.has_value());
    CHECK(verdict.failures.size() == rules.size());
    CHECK(walls_of(verdict) == std::set<std::string>(wall_names().begin(), wall_names().end()));
  }
}

TEST_CASE("every wall has a rule that must hold at the door, save the one that is about afterwards") {
  const auto rules = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
  std::set<std::string> at_door;
  for (const auto& rule : rules)
    if (rule.at_door) at_door.insert(rule.wall);
  std::set<std::string> expected(wall_names().begin(), wall_names().end());
  expected.erase("teardown");
  CHECK(at_door == expected);
}

TEST_CASE("an observation without a rule is not scored") {
  const auto rules = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
  auto evidence = sample::evidence(rules);
  evidence.set("memory.new_counter", std::uint64_t{1}, "/sys/fs/cgroup/x");
  const auto verdict = judge(rules, evidence, exited(0), std::nullopt);
  CHECK_FALSE(verdict.scored);
  REQUIRE(verdict.failures.size() == 1);
  CHECK(verdict.failures[0].wall == "evidence");
  CHECK(verdict.failures[0].observed == "none for memory.new_counter");
}

TEST_CASE("a counter that goes backwards, another cgroup, another init, another config are not scored") {
  const auto rules = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
  const std::pair<const char*, const char*> changed[] = {{"evidence.cgroup_id.end", "evidence"},
                                                         {"evidence.init_start_time.end", "evidence"},
                                                         {"evidence.config_sha256.end", "evidence"},
                                                         {"memory.limit.end", "memory"},
                                                         {"memory.swap.end", "memory"},
                                                         {"processes.limit.end", "processes"}};
  for (const auto& [key, wall] : changed) {
    CAPTURE(key);
    auto evidence = sample::evidence(rules);
    evidence.replace(key, {Value(std::uint64_t{12345}), "falsified"});
    CHECK(walls_of(judge(rules, evidence, exited(0), std::nullopt)) == std::set<std::string>{wall});
  }
  auto evidence = sample::evidence(rules);
  evidence.replace("cpu-time.usage_us", {Value(std::uint64_t{1'000}), "cpu.stat"});
  evidence.replace("cpu-time.usage_us.end", {Value(std::uint64_t{999}), "cpu.stat"});
  CHECK(walls_of(judge(rules, evidence, exited(0), std::nullopt)) == std::set<std::string>{"cpu-time"});
}

TEST_CASE("a second reading that contradicts the first is no evidence") {
  Evidence evidence;
  evidence.set("memory.limit", std::uint64_t{1}, "a");
  evidence.set("memory.limit", std::uint64_t{1}, "b");
  CHECK(evidence.find("memory.limit")->value() != nullptr);
  evidence.set("memory.limit", std::uint64_t{2}, "c");
  REQUIRE(evidence.find("memory.limit")->value() == nullptr);
  CHECK(std::get<Missing>(evidence.find("memory.limit")->seen).why == "contradiction: 1 from a, 2 from c");
}

TEST_CASE("the swap pin names the kernel's own file on both versions") {
  const auto swap_on = [](CgroupLayout layout) {
    for (const auto& rule : wall_rules(sample::policy(), sample::host(layout)))
      if (rule.key == "memory.swap") return rule.expected;
    return std::string("no rule");
  };
  CHECK(swap_on(CgroupLayout::v2) == "0");
  CHECK(swap_on(CgroupLayout::hybrid) == "268435456");
}

TEST_CASE("outcomes and exit statuses by cause") {
  const auto rules = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
  const auto evidence = sample::evidence(rules);
  struct Row {
    Cause cause;
    int exit_code;
    bool scored;
    const char* outcome;
    int status;
  };
  const Row rows[] = {{Cause::exited, 0, true, "succeeded", 0}, {Cause::exited, 3, true, "failed", 1},
                      {Cause::cpu_time, 0, true, "limit", 124}, {Cause::wall_time, 0, true, "limit", 124},
                      {Cause::memory, 0, true, "limit", 1},     {Cause::output, 0, true, "limit", 1},
                      {Cause::refusals, 0, true, "limit", 1},   {Cause::killed, 0, false, "fault", 3}};
  for (const auto& row : rows) {
    End end = exited(row.exit_code);
    end.cause = row.cause;
    CAPTURE(to_text(row.cause));
    const auto verdict = judge(rules, evidence, end, std::nullopt);
    CHECK(verdict.scored == row.scored);
    CHECK(verdict.tier.has_value() == row.scored);
    CHECK(std::string(to_text(verdict.outcome)) == row.outcome);
    CHECK(exit_status(verdict, end) == row.status);
  }
  End signaled;
  signaled.cause = Cause::signaled;
  signaled.signal = 11;
  CHECK(judge(rules, evidence, signaled, std::nullopt).outcome == Outcome::failed);
}

TEST_CASE("an end that contradicts itself, a fault and an empty list of rules are not scored") {
  const auto rules = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
  const auto evidence = sample::evidence(rules);
  End both = exited(0);
  both.signal = 9;
  End neither;
  neither.cause = Cause::exited;
  End wrong;
  wrong.cause = Cause::exited;
  wrong.signal = 9;
  for (const End& end : {both, neither, wrong}) {
    const auto verdict = judge(rules, evidence, end, std::nullopt);
    CHECK_FALSE(verdict.scored);
    CHECK(walls_of(verdict) == std::set<std::string>{"evidence"});
  }
  End faulty = exited(0);
  faulty.fault = "the disk is full";
  const auto verdict = judge(rules, evidence, faulty, std::nullopt);
  CHECK(verdict.outcome == Outcome::fault);
  CHECK(verdict.failures[0].observed == "the disk is full");
  CHECK(exit_status(verdict, faulty) == 3);
  CHECK_FALSE(judge({}, Evidence(), exited(0), std::nullopt).scored);
  CHECK_FALSE(judge(rules, evidence, End(), std::nullopt).scored);
}

TEST_CASE("a candidate that never started is refused for what broke at the door, and for what it left") {
  const auto rules = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
  Evidence evidence;
  for (const auto& rule : rules)
    if (rule.at_door) evidence.set(rule.key, *sample::evidence(rules).find(rule.key)->value(), "sample");
  evidence.replace("memory.swap", {Value(std::string("max")), "/sys/fs/cgroup/benchsand/r1/ct/memory.swap.max"});
  const auto verdict = judge(rules, evidence, End(), std::nullopt);
  CHECK(verdict.outcome == Outcome::refused);
  REQUIRE(verdict.failures.size() == 1);
  CHECK(verdict.failures[0].wall == "memory");
  CHECK(verdict.failures[0].expected == "0");
  CHECK(verdict.failures[0].observed == "max");
  CHECK(verdict.failures[0].source == "/sys/fs/cgroup/benchsand/r1/ct/memory.swap.max");

  evidence.set("teardown.cgroup", std::string("still there"), "sample");
  CHECK(walls_of(judge(rules, evidence, End(), std::nullopt)) == std::set<std::string>{"memory", "teardown"});
}

TEST_CASE("who ended the run") {
  const Limits limits = sample::policy().limits;
  const auto cause = [&](EndFacts facts) { return std::string(to_text(end_of(facts, limits).cause)); };
  EndFacts facts;
  CHECK(cause(facts) == "exited");
  facts.wait_status = 11;
  CHECK(cause(facts) == "signaled");
  CHECK(end_of(facts, limits).signal == 11);
  facts.wait_status = 9;
  CHECK(cause(facts) == "killed");
  facts.cpu_used_us = 1'000'000;
  CHECK(cause(facts) == "signaled");
  facts.cpu_used_us = 0;
  facts.wait_status = 7 << 8;
  CHECK(end_of(facts, limits).exit_code == 7);
  facts.wall_used_us = limits.wall_time_us + 1;
  CHECK(cause(facts) == "wall-time");
  facts.cpu_used_us = limits.cpu_time_us + 1;
  CHECK(cause(facts) == "cpu-time");
  facts.oom_kills = 1;
  CHECK(cause(facts) == "memory");
  facts.memory_peak = limits.memory_bytes;
  CHECK(cause(facts) == "memory");
  facts.memory_peak = limits.memory_bytes / 2;
  CHECK(cause(facts) == "killed");
  facts.killed_for = Cause::output;
  CHECK(cause(facts) == "output");
}

TEST_CASE("processors: what was asked for, at the door and at the end; unasked, the same at both") {
  const auto walls = [](const std::string& asked, const std::string& door, const std::string& end) {
    auto policy = sample::policy();
    policy.cpuset = asked;
    const auto rules = wall_rules(policy, sample::host(CgroupLayout::v2));
    auto evidence = sample::evidence(rules);
    evidence.replace("cpu-time.cpuset", {Value(door), "cpuset.cpus.effective"});
    evidence.replace("cpu-time.cpuset.end", {Value(end), "cpuset.cpus.effective"});
    return walls_of(judge(rules, evidence, exited(0), std::nullopt));
  };
  const std::set<std::string> none, broken = {"cpu-time"};
  CHECK(walls("0-1", "0-1", "0-1") == none);
  CHECK(walls("0-1", "0", "0") == broken);
  CHECK(walls("0-1", "0-1", "0") == broken);
  CHECK(walls("0-1", kNoCpuset, kNoCpuset) == broken);
  CHECK(walls("", "0-3", "0-3") == none);
  CHECK(walls("", kNoCpuset, kNoCpuset) == none);
  CHECK(walls("", "0-3", "0-2") == broken);
  CHECK(walls("", "", "") == broken);
  CHECK(walls("", "0-3 garbage", "0-3 garbage") == broken);
}

TEST_CASE("bytes on block devices: counted at the door, and no more at the end") {
  const auto walls = [](const Value& door, const Value& end) {
    const auto rules = wall_rules(sample::policy(), sample::host(CgroupLayout::v2));
    auto evidence = sample::evidence(rules);
    evidence.replace("output.device_writes", {door, "io.stat"});
    evidence.replace("output.device_writes.end", {end, "io.stat"});
    return walls_of(judge(rules, evidence, exited(0), std::nullopt));
  };
  const std::set<std::string> none, broken = {"output"};
  CHECK(walls(std::uint64_t{0}, std::uint64_t{0}) == none);
  CHECK(walls(std::uint64_t{4096}, std::uint64_t{4096}) == none);
  CHECK(walls(std::uint64_t{0}, std::uint64_t{1}) == broken);
  CHECK(walls(std::uint64_t{4096}, std::uint64_t{0}) == broken);
  CHECK(walls(std::string(kNotOnThisHost), std::string(kNotOnThisHost)) == none);
  CHECK(walls(std::string(kNotOnThisHost), std::uint64_t{0}) == broken);
  CHECK(walls(std::string("unknown"), std::string("unknown")) == broken);
}
