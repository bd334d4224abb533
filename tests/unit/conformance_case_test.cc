#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "conformance/case.h"
#include "conformance/claims.h"
#include "conformance/ten.h"
#include "fixtures.h"
#include "sample.h"

using namespace benchsand;
using namespace benchsand::conformance;

namespace {

const std::string kGood =
    "benchsand_cases: 1\n"
    "cases:\n"
    "  - id: kernel.bpf-map\n"
    "    wall: syscalls\n"
    "    attempt: make a BPF map\n"
    "    asserts: no BPF object can be made\n"
    "    verb: bpf-map\n"
    "    expect: EPERM\n"
    "    layer: seccomp\n"
    "    control: {down: [seccomp], then: [ok]}\n";

// The first line of what is wrong with the good text when `from` is `to`.
std::string problem(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  const auto parsed = parse_cases(text.replace(at, from.size(), to), "x.yaml");
  if (parsed) return "none";
  const std::string message = parsed.error().message;
  return message.substr(0, message.find('\n'));
}

}  // namespace

TEST_CASE("what is wrong with a case is said with its place") {
  CHECK(problem("EPERM", "EPERM") == "none");
  CHECK(problem("    control: {down: [seccomp], then: [ok]}\n", "") ==
        "x.yaml:3:5: error: control: without it nothing shows that \"kernel.bpf-map\" can fail");
  CHECK(problem("down: [seccomp]", "down: [secomp]")
            .starts_with("x.yaml:10:14: error: control.down: no wall is called \"secomp\""));
  CHECK(problem("down: [seccomp], ", "") == "x.yaml:10:14: error: control: nothing is taken down, so nothing can flip");
  CHECK(problem("then: [ok]", "then: []")
            .starts_with("x.yaml:10:14: error: control.then: an outcome that shows the flip is due"));
  CHECK(problem("wall: syscalls", "wall: calls") == "x.yaml:3:5: error: wall: no wall is called \"calls\"");
  for (const char* alone : {"    limits: {memory: 1MiB}\n", "    planted: true\n"})
    CHECK(problem("    layer", std::string(alone) + "    layer") ==
          "x.yaml:3:5: error: alone: with limits, `planted`, `behind` or `grant` \"kernel.bpf-map\" needs a sandbox of "
          "its own");
  CHECK(problem("then: [ok]", "then: [ok], grant: true")
            .starts_with("x.yaml:3:5: error: alone: with limits, `planted`, `behind` or `grant`"));
  CHECK(problem("kernel.bpf-map", "Kernel") == "x.yaml:3:5: error: id: \"Kernel\" is not of a-z 0-9 . -");
  CHECK(problem("    layer", "    check: 11\n    layer") == "x.yaml:9:12: error: check: there are ten");
  CHECK(problem("    layer", "    claim: wall\n    layer") == "x.yaml:3:5: error: claim: only `limit` can stand here");
  CHECK(problem("    layer", "    alone: yes\n    layer") ==
        "x.yaml:9:12: error: case.alone: only `true` can stand here");
  CHECK(problem("    layer", "    host: [end/cause]\n    layer") ==
        "x.yaml:3:5: error: host: 'PLACE = VALUE' is due, or >= or <=, not \"end/cause\"");
  CHECK(problem("    verb: bpf-map\n", "").find("verb") != std::string::npos);
  CHECK(problem("    layer", "    colour: red\n    layer").find("colour") != std::string::npos);
}

TEST_CASE("what is attempted behind walls that are down: alone, with a control that takes down another one") {
  const auto with = [](const std::string& behind, const std::string& down) {
    std::string changed = kGood;
    changed.replace(changed.find("    layer"), 0, "    alone: true\n    behind: [" + behind + "]\n");
    changed.replace(changed.find("[seccomp], then"), 9, "[" + down + "]");
    const auto parsed = parse_cases(changed, "x.yaml");
    return parsed ? "none" : parsed.error().message.substr(0, parsed.error().message.find('\n'));
  };
  const std::string other =
      "x.yaml:3:5: error: behind: control.down of \"kernel.bpf-map\" must have these walls, and another one";
  CHECK(with("seccomp", "seccomp, identity") == "none");
  CHECK(with("seccomp", "seccomp") == other);
  CHECK(with("seccomp", "identity, masks") == other);
  CHECK(with("secomp", "seccomp, identity") == "x.yaml:3:5: error: case.behind: no wall is called \"secomp\"");
  CHECK(problem("    layer", "    behind: [seccomp]\n    layer")
            .starts_with("x.yaml:3:5: error: alone: with limits, `planted`, `behind` or `grant`"));
}

TEST_CASE("what the filter hides is attempted without it") {
  const auto cases = builtin_cases();
  REQUIRE(cases);
  std::set<Relaxation> refusing;
  for (const Case& one : cases->list)
    for (const Relaxation wall : one.control.down)
      if (!one.behind.empty() && std::find(one.behind.begin(), one.behind.end(), wall) == one.behind.end())
        refusing.insert(wall);
  for (const Relaxation due : {Relaxation::bpf_deny, Relaxation::network_namespace, Relaxation::identity,
                               Relaxation::user_namespace, Relaxation::no_new_privs})
    CHECK(refusing.contains(due));
}

TEST_CASE("an attempt through a program: its command line, alone in a sandbox") {
  const auto with = [](const std::string& verb, const std::string& program) {
    std::string changed = kGood;
    return parse_cases(
        changed.replace(changed.find("verb: bpf-map"), 13, "verb: " + verb + "\n    program: " + program), "x.yaml");
  };
  const auto good = with("curl -sS http://[::1]/", "curl");
  REQUIRE(good);
  CHECK(good->front().verb == "program curl curl -sS http://[::1]/");
  CHECK(good->front().program == "curl");
  CHECK(good->front().alone);
  const auto problem_of = [&](const std::string& verb, const std::string& program) {
    const auto parsed = with(verb, program);
    REQUIRE_FALSE(parsed);
    return parsed.error().message.substr(0, parsed.error().message.find('\n'));
  };
  CHECK(problem_of("curl x", "curl x") == "x.yaml:3:5: error: program: a name is due, without arguments");
  const std::string long_line = "x.yaml:3:5: error: verb: a command line is due, of at most 900 bytes";
  CHECK(problem_of("\"curl\\tx\"", "curl") == long_line);
  CHECK(problem_of("\"curl\\nx\"", "curl") == long_line);
  CHECK(problem_of("curl " + std::string(900, 'x'), "curl") == long_line);
  CHECK(with("curl " + std::string(895, 'x'), "curl"));
}

TEST_CASE("every attempt through a program is counted for itself, whole and in its control") {
  const auto cases = builtin_cases();
  REQUIRE(cases);
  std::set<std::string> programs;
  for (const Case& one : cases->list) {
    CAPTURE(one.id);
    CHECK(one.program.empty() == !one.id.starts_with("programs."));
    if (one.program.empty()) continue;
    programs.insert(one.program);
    REQUIRE(one.host.size() == 1);
    CHECK(one.host[0].place.starts_with("refusals/socket AF_INET"));
    CHECK(one.host[0].value == "1");
    REQUIRE(one.control.host.size() == 1);
    CHECK(one.control.host[0].place.starts_with("sink/"));
    CHECK(one.control.host[0].relation == HostFact::Relation::at_least);
    // By what it ended with alone nothing is inapplicable: a program says what it likes.
    for (const auto& [fact, reason] : one.if_control) CHECK(host_fact(fact));
  }
  for (const char* due : {"curl", "wget", "git", "pip", "ssh", "dig", "getent", "python3"})
    CHECK(programs.contains(due));
}

TEST_CASE("the shipped cases: every one of the ten, and enough beside them") {
  const auto cases = builtin_cases();
  if (!cases) FAIL(cases.error().message);
  std::set<unsigned> checks;
  std::set<std::string> together;
  std::size_t further = 0, limits = 0;
  for (const Case& one : cases->list) {
    CAPTURE(one.id);
    checks.insert(one.check);
    limits += one.limit;
    further += one.check == 0 && !one.limit;
    // In one sandbox an attempt is made once, and its count is that of one case.
    if (!one.alone) CHECK(together.insert(one.verb).second);
    if (!one.limit) CHECK_FALSE(one.control.then.empty());
    if (!one.limit && one.control.verbs.empty() && one.control.host.empty())
      for (const auto& [where, outcome] : one.expect)
        CHECK(std::find(one.control.then.begin(), one.control.then.end(), outcome) == one.control.then.end());
  }
  for (const Case& strict : cases->list)
    for (const auto& [profile, text] : strict.in_profile) {
      CAPTURE(strict.id);
      CAPTURE(profile);
      const Case one = for_profile(strict, profile);
      const auto& then = one.control.then;
      if (!one.limit && one.control.verbs.empty() && one.control.host.empty())
        CHECK(std::find(then.begin(), then.end(), one.expect.at("")) == then.end());
    }
  for (unsigned check = 1; check <= kChecks; ++check) CHECK(checks.contains(check));
  CHECK(further >= 300);
  CHECK(limits >= 20);
}

TEST_CASE("docs/claims.md is what the shipped cases say") {
  const auto cases = builtin_cases();
  REQUIRE(cases);
  CHECK(fixture("../../docs/claims.md") == claims_page(cases->list));
}

TEST_CASE("a claim names its checks, what refuses, what the host sees, and its controls") {
  auto cases = parse_cases(kGood, "x.yaml");
  REQUIRE(cases);
  const std::string page = claims_page(*cases);
  CHECK(page.find("| no BPF object can be made | kernel.bpf-map | EPERM (seccomp) | - | without seccomp |") !=
        std::string::npos);
}

TEST_CASE("what a profile lets through is refused by another wall, or a limit of that profile") {
  Case one;
  one.expect = {{"", "EPERM"}};
  one.layer = "seccomp";
  one.ledger = "linkat";
  one.in_profile = {{"python", "EROFS by rootfs"}, {"node", "ok"}};
  const HostFacts facts = sample::host(CgroupLayout::v2);
  const Case strict = for_profile(one, "strict"), python = for_profile(one, "python"), node = for_profile(one, "node");
  CHECK(strict.expected_of(facts) == "EPERM");
  CHECK(strict.ledger == "linkat");
  CHECK(python.expected_of(facts) == "EROFS");
  CHECK(python.layer == "rootfs");
  CHECK(python.ledger.empty());
  CHECK_FALSE(python.limit);
  CHECK(node.expected_of(facts) == "ok");
  CHECK(node.limit);
  CHECK(node.allowed_by == "node");
}
