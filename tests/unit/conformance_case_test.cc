#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "conformance/case.h"
#include "conformance/claims.h"
#include "conformance/ten.h"
#include "fixtures.h"

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
