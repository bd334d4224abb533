#include "oci/relaxation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "oci/bpf_eval.h"
#include "oci/bundle.h"
#include "oci/verdict.h"
#include "sample.h"

using namespace benchsand;

namespace {

std::map<std::string, std::string> expected_by(const Policy& policy, bool at_door) {
  std::map<std::string, std::string> expected;
  for (const Rule& rule : wall_rules(policy, sample::host(CgroupLayout::v2)))
    if (rule.at_door == at_door) expected[rule.key] = rule.expected;
  return expected;
}

// The keys of rules that are another than without relaxations.
std::string loosened(const std::vector<Relaxation>& relaxations, bool at_door) {
  Policy policy = sample::policy();
  const auto before = expected_by(policy, at_door);
  for (const Relaxation relaxation : relaxations) take_down(policy, relaxation);
  const auto now = expected_by(policy, at_door);
  CHECK(now.size() == before.size());
  std::string keys;
  for (const auto& [key, expected] : before)
    if (now.at(key) != expected) keys += (keys.empty() ? "" : " ") + key;
  return keys;
}

End exited() {
  End end;
  end.cause = Cause::exited;
  end.exit_code = 0;
  return end;
}

}  // namespace

TEST_CASE("a relaxation takes down its own rules and no others") {
  const Relaxation filter = Relaxation::seccomp_network, deny = Relaxation::bpf_deny;
  CHECK(loosened({}, true) == "");
  CHECK(loosened({filter}, true) == "network.open_families");
  CHECK(loosened({filter}, false) == "network.bpf_sockets");
  CHECK(loosened({deny}, true) == "");
  CHECK(loosened({deny}, false) == "");
  CHECK(loosened({deny, filter}, true) == "network.open_families");
  CHECK(loosened({deny, filter}, false) ==
        "network.bpf_ipv4_connects network.bpf_ipv4_sends network.bpf_ipv6_connects network.bpf_ipv6_sends "
        "network.bpf_sockets");
}

TEST_CASE("without the program that refuses sockets, connects get as far as they do without its refusal") {
  Policy policy = sample::policy();
  policy.egress_counters = {EgressCounter::connects};
  take_down(policy, Relaxation::seccomp_network);
  CHECK(expected_by(policy, false).at("network.bpf_ipv4_connects") == "a count");
  CHECK_FALSE(expected_by(policy, false).contains("network.bpf_sockets"));
  CHECK(expected_by(policy, true).at("network.bpf") == "connect4 connect6 sendmsg4 sendmsg6");
}

TEST_CASE("a run with any wall taken down starts, and is never scored") {
  for (const Relaxation relaxation : kRelaxations) {
    CAPTURE(to_text(relaxation));
    Policy policy = sample::policy();
    take_down(policy, relaxation);
    const auto rules = wall_rules(policy, sample::host(CgroupLayout::v2));
    auto evidence = sample::evidence(rules);
    evidence.remove("evidence.taken_down");
    evidence.set("evidence.taken_down", walls_taken_down(policy), "the policy");
    CHECK(broken_rules(rules, evidence, true).empty());
    const Verdict verdict = judge(rules, evidence, exited(), AttestationClaim{"sev_guest"});
    CHECK_FALSE(verdict.scored);
    CHECK(verdict.outcome == Outcome::refused);
    REQUIRE(verdict.failures.size() == 1);
    CHECK(verdict.failures[0].wall == "evidence");
    CHECK(verdict.failures[0].expected == "no wall taken down for a test");
    CHECK(verdict.failures[0].observed == to_text(relaxation));
    CHECK(policy.relaxations == std::vector<std::string>{std::string("taken down for a test: ") + to_text(relaxation)});
    take_down(policy, relaxation);
    CHECK(policy.relaxations.size() == 1);
  }
}

TEST_CASE("seccomp-network lets every socket family through, whatever stood in the way") {
  Policy policy = sample::policy();
  policy.seccomp.allow = {"read", "connect"};
  policy.seccomp.allow_if = {{"socket", 0, ~std::uint64_t{0}, {1}}, {"clone", 0, 0x7e020080, {0}}};
  policy.seccomp.refuse_with = {{"EACCES", {"socket", "sendmmsg"}}, {"ENOSYS", {"clone3"}}};
  take_down(policy, Relaxation::seccomp_network);
  const auto program = compile_seccomp(policy.seccomp);
  if (!program) FAIL(program.message());
  const auto summary = summarize_filter(*program);
  REQUIRE(summary);
  const auto& families = summary->open_families;
  for (const char* family : {"2", "10", "16", "17", "38", "40"})
    CHECK(std::find(families.begin(), families.end(), family) != families.end());
  for (const char* call : {"connect", "sendto", "sendmsg", "sendmmsg"})
    CHECK(std::count(policy.seccomp.allow.begin(), policy.seccomp.allow.end(), call) == 1);
  // What is not about sockets stays.
  REQUIRE(policy.seccomp.allow_if.size() == 1);
  CHECK(policy.seccomp.allow_if[0].call == "clone");
  CHECK(policy.seccomp.refuse_with ==
        std::vector<std::pair<std::string, std::vector<std::string>>>{{"ENOSYS", {"clone3"}}});
}

TEST_CASE("only the walls of what is taken down may be broken at the door") {
  Policy policy = sample::policy();
  const auto broken = [&] {
    std::string walls;
    for (const auto& wall : wall_names())
      if (may_fail_at_the_door(policy, wall)) walls += (walls.empty() ? "" : " ") + wall;
    return walls;
  };
  CHECK(broken() == "");
  take_down(policy, Relaxation::seccomp_network);
  take_down(policy, Relaxation::user_namespace);
  CHECK(broken() == "");
  take_down(policy, Relaxation::masks);
  CHECK(broken() == "mounts rootfs");
  take_down(policy, Relaxation::seccomp);
  CHECK(broken() == "network mounts rootfs syscalls");
  take_down(policy, Relaxation::identity);
  take_down(policy, Relaxation::pid_namespace);
  CHECK(broken() == "network mounts rootfs privileges syscalls namespaces");
}

TEST_CASE("an open filter lets every call through but those of the door") {
  Policy policy = sample::policy();
  take_down(policy, Relaxation::seccomp);
  const auto document = oci_seccomp_json(policy.seccomp, "/listener");
  CHECK(document["defaultAction"] == "SCMP_ACT_ALLOW");
  REQUIRE(document["syscalls"].size() == 1);
  CHECK(document["syscalls"][0]["action"] == "SCMP_ACT_NOTIFY");
  CHECK(document["syscalls"][0]["names"] == nlohmann::json({"execve", "execveat", "exit_group"}));
  const auto program = compile_seccomp(policy.seccomp);
  REQUIRE(program);
  const auto summary = summarize_filter(*program);
  REQUIRE(summary);
  CHECK(summary->refused == 0);
  CHECK_FALSE(summary->i386_killed);
  CHECK_FALSE(summary->x32_killed);
}

TEST_CASE("what a relaxation loosens in the bundle") {
  const auto bundle = [](std::initializer_list<Relaxation> down) {
    Policy policy = sample::policy();
    for (const Relaxation relaxation : down) take_down(policy, relaxation);
    BundlePlaces places;
    places.devices = "/dev";
    return bundle_json(policy, sample::host(CgroupLayout::v2), places);
  };
  const auto strict = bundle({});
  const auto changed = [&](Relaxation relaxation) {
    std::string paths;
    for (const auto& step : nlohmann::json::diff(strict, bundle({relaxation})))
      if (paths.find(step["path"]) == std::string::npos) paths += step["path"].get<std::string>() + " ";
    return paths;
  };
  CHECK(changed(Relaxation::no_new_privs) == "/process/noNewPrivileges ");
  CHECK(changed(Relaxation::rootfs) ==
        "/"
        "root/readonly ");
  CHECK(changed(Relaxation::devices) == "/mounts/1/options/1 ");
  CHECK(changed(Relaxation::bpf_deny) == "");
  CHECK(bundle({Relaxation::identity})["process"]["user"] == nlohmann::json({{"uid", 0}, {"gid", 0}}));
  CHECK(bundle({Relaxation::identity})["process"]["capabilities"]["bounding"].size() == 37);
  CHECK(bundle({Relaxation::pid_namespace})["linux"]["namespaces"][0]["type"] == "mount");
  CHECK(bundle({Relaxation::masks})["linux"]["maskedPaths"].empty());
  CHECK(bundle({Relaxation::masks})["mounts"][0]["options"].back() == "rw");
}
