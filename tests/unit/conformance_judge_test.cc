// The verdict of a case, with each way to show nothing that suites of this kind have been seen to have: none of them passes.
#include <doctest/doctest.h>

#include "conformance/judge.h"
#include "sample.h"

using namespace benchsand;
using namespace benchsand::conformance;

namespace {

HostFacts host() {
  HostFacts facts = sample::host(CgroupLayout::v2);
  facts.delegate_name = "crun";
  return facts;
}

Case sample_case() {
  Case one;
  one.id = "kernel.bpf-map";
  one.wall = "syscalls";
  one.attempt = "make a BPF map";
  one.asserts = "no BPF object can be made";
  one.verb = "bpf-map";
  one.expect = {{"", "EPERM"}};
  one.layer = "seccomp";
  one.ledger = "bpf";
  one.control.down = {Relaxation::seccomp};
  one.control.then = {"ok"};
  one.if_control = {{"ENOSYS", "not built into this kernel"}};
  return one;
}

SceneResult scene(const std::string& outcome, std::uint64_t counted) {
  SceneResult result;
  read_told("bpf-map\t" + outcome + "\nend\tok\n", {"bpf-map"}, result);
  result.record = {{"evidence", {{"refusals", {{"by_call", nlohmann::json::array()}}}}}};
  if (counted > 0)
    result.record["evidence"]["refusals"]["by_call"].push_back(
        {{"call", "bpf"}, {"errno", "EPERM"}, {"count", counted}});
  return result;
}

CaseResult judged(const Case& one, const SceneResult& strict, const SceneResult& control) {
  return judge_case(one, host(), strict, &control, ledger_differences({&one}, strict, host()));
}

std::string verdict(const CaseResult& result) {
  return std::string(to_text(result.verdict)) + (result.reason.empty() ? "" : ": " + result.reason);
}

std::string verdict(const Case& one, const SceneResult& strict, const SceneResult& control) {
  return verdict(judged(one, strict, control));
}

}  // namespace

TEST_CASE("what is refused, counted, and works in its control is REFUSED") {
  const auto result = judged(sample_case(), scene("EPERM", 1), scene("ok", 0));
  CHECK(verdict(result) == "REFUSED");
  CHECK(result.expected == "EPERM by seccomp");
  CHECK(result.inside == "EPERM");
  CHECK(result.host == "ledger: bpf");
  CHECK(result.control == "without seccomp: ok");
}

TEST_CASE("what shows nothing does not pass") {
  const Case one = sample_case();
  const auto good = scene("EPERM", 1), works = scene("ok", 0);
  CHECK(verdict(one, scene("ok", 0), works) == "ESCAPED: it worked");
  CHECK(verdict(one, scene("ENOENT", 0), works) == "ESCAPED: refused in another way: ENOENT");
  CHECK(verdict(one, scene("unsupported", 0), works) == "UNKNOWN: the probe could not attempt it: unsupported");
  CHECK(verdict(one, scene("timeout", 0), works) == "UNKNOWN: the probe could not attempt it: timeout");
  CHECK(verdict(one, good, scene("EPERM", 0)) ==
        "VACUOUS: without the wall it came to EPERM, where ok would show that it can be done");
  CHECK(verdict(one, good, scene("ENOSYS", 0)) == "INAPPLICABLE: not built into this kernel");
  // Not inapplicable although the control says so: it worked in the sandbox.
  CHECK(verdict(one, scene("ok", 0), scene("ENOSYS", 0)).starts_with("VACUOUS: "));
  // Nor by an end that neither the wall nor the kernel gives.
  CHECK(verdict(one, scene("SIGSEGV", 0), scene("ENOSYS", 0)) == "ESCAPED: refused in another way: SIGSEGV");
  CHECK(verdict(one, scene("timeout", 0), scene("ENOSYS", 0)) == "UNKNOWN: the probe could not attempt it: timeout");
  CHECK(verdict(one, scene("ENOSYS", 0), scene("ENOSYS", 0)) == "INAPPLICABLE: not built into this kernel");
  CHECK(verdict(one, scene("EPERM", 0), works) ==
        "UNKNOWN: the host contradicts: the ledger has bpf 0 times, the probe was refused 1 times");
  CHECK(
      verdict(one, scene("EPERM", 2), works).starts_with("UNKNOWN: the host contradicts: the ledger has bpf 2 times"));
}

TEST_CASE("an outcome that shows the flip shows nothing where the attempt came to it as well") {
  Case one = sample_case();
  one.ledger.clear();
  one.control.then = {"ok", "EPERM"};
  CHECK(verdict(one, scene("EPERM", 0), scene("ok", 0)) == "REFUSED");
  CHECK(verdict(one, scene("EPERM", 0), scene("EPERM", 0)) == "VACUOUS: without the wall it came to the same, EPERM");
  one.control.host = {*host_fact("end/cause = exited")};  // then the host tells them apart
  auto control = scene("EPERM", 0);
  control.record["end"] = {{"cause", "exited"}};
  CHECK(verdict(one, scene("EPERM", 0), control) == "REFUSED");
}

TEST_CASE("a sandbox that was not there, not whole, or not judged proves nothing") {
  const Case one = sample_case();
  const auto good = scene("EPERM", 1), works = scene("ok", 0);
  auto broken = good;
  broken.broken_walls = "memory: expected 1, observed 2";
  CHECK(verdict(one, broken, works) == "UNKNOWN: walls of its sandbox did not hold: memory: expected 1, observed 2");
  SceneResult none;
  none.fault = "crun is gone";
  CHECK(verdict(one, none, works) == "UNKNOWN: there was no sandbox: crun is gone");
  CHECK(verdict(one, good, none) == "UNKNOWN: its control could not be made: crun is gone");
  CHECK(verdict(one, SceneResult(), works) == "UNKNOWN: the probe told nothing of it");
  CHECK(verdict(one, good, SceneResult()) == "UNKNOWN: its control told nothing");
  CHECK(verdict(judge_case(one, host(), good, nullptr, {})) == "UNKNOWN: it has no control");
}

TEST_CASE("a limit that works is confirmed, and one that does not is announced") {
  Case limit = sample_case();
  limit.limit = true;
  limit.expect = {{"", "ok"}};
  CHECK(verdict(judge_case(limit, host(), scene("ok", 0), nullptr, {})).starts_with("CONFIRMED-LIMIT: works"));
  CHECK(verdict(judge_case(limit, host(), scene("EPERM", 0), nullptr, {})).starts_with("LIMIT-GONE: came to EPERM"));
  CHECK(verdict(judge_case(limit, host(), SceneResult(), nullptr, {})) == "UNKNOWN: the probe told nothing of it");
  CHECK(verdict(judge_case(limit, host(), scene("unsupported", 0), nullptr, {})).starts_with("UNKNOWN: the probe"));
  limit.allowed_by = "python";
  CHECK(verdict(limit, scene("ok", 0), scene("ok", 0)) ==
        "CONFIRMED-LIMIT: the profile python lets it through on purpose (profiles/README.md)");
  CHECK(verdict(limit, scene("EPERM", 1), scene("ok", 0)) ==
        "LIMIT-GONE: came to EPERM; profiles/README.md says that it works");
}

TEST_CASE("what the host must have seen is read from the record") {
  Case one = sample_case();
  one.ledger.clear();
  one.alone = true;
  auto strict = scene("EPERM", 0);
  strict.record["end"] = {{"cause", "memory"}};
  strict.record["evidence"]["spent"]["memory"]["oom_kills"] = {{"observed", 2}};
  strict.record["outputs"] = {{{"path", "kept"}}};
  strict.record["outputs_refused"] = {{{"path", "link"}, {"reason", "a symbolic link"}}};
  const auto with = [&](HostFact fact) {
    one.host = {std::move(fact)};
    return verdict(one, strict, scene("ok", 0));
  };
  using enum HostFact::Relation;
  CHECK(with({"end/cause", equals, "memory"}) == "REFUSED");
  CHECK(with({"end/cause", equals, "exited"}) == "UNKNOWN: the host contradicts: end/cause is memory, not exited");
  CHECK(with({"spent/memory/oom_kills", at_least, "2"}) == "REFUSED");
  CHECK(with({"spent/memory/oom_kills", at_least, "3"}).starts_with("UNKNOWN: "));
  CHECK(with({"spent/memory/oom_kills", at_most, "1"}).starts_with("UNKNOWN: "));
  CHECK(with({"spent/memory/peak", at_least, "0"}) == "UNKNOWN: the record has no spent/memory/peak");
  CHECK(with({"outputs/kept", equals, "present"}) == "REFUSED");
  CHECK(with({"outputs/gone", equals, "absent"}) == "REFUSED");
  CHECK(with({"outputs/kept", equals, "absent"}).starts_with("UNKNOWN: "));
  CHECK(with({"refused/link", equals, "a symbolic link"}) == "REFUSED");
  CHECK(with({"refused/none", equals, "a symbolic link"}) == "UNKNOWN: the record has no refused/none");
}

TEST_CASE("through a program: what the ledger has, and who came to the sink, and never how it ended alone") {
  using enum HostFact::Relation;
  Case one = sample_case();
  one.verb = "program curl curl http://192.0.2.1/";
  one.program = "curl";
  one.alone = true;
  one.ledger.clear();
  one.expect = {{"", "exit-7"}};
  one.shown = "Permission denied";
  one.host = {{"refusals/socket AF_INET", at_least, "1"}};
  one.control.host = {{"sink/connections", at_least, "1"}};
  one.control.then = {"exit-7", "ok"};
  one.if_control = {{"sink/ipv6 = no", "this kernel has no IPv6"}};
  const auto ended = [&](const std::string& how, std::uint64_t refused, std::uint64_t came) {
    SceneResult result;
    read_told(one.verb + "\t" + how + "\nend\tok\n", {one.verb}, result);
    result.record = {{"sink", {{"connections", came}, {"ipv6", "yes"}}}};
    auto& rows = result.record["evidence"]["refusals"]["by_call"] = nlohmann::json::array();
    // Those of other families and calls are none of it.
    rows.push_back({{"call", "socket"}, {"argument", "AF_INET6"}, {"count", 5}});
    rows.push_back({{"call", "connect"}, {"argument", "AF_INET"}, {"count", 5}});
    if (refused > 0) rows.push_back({{"call", "socket"}, {"argument", "AF_INET"}, {"count", refused}});
    return result;
  };
  const std::string said = "exit-7\tcurl: Permission denied.";
  const auto came = ended("exit-7\tcurl: hung up", 0, 2);
  const auto result = judged(one, ended(said, 3, 0), came);
  CHECK(verdict(result) == "REFUSED");
  CHECK(result.inside == "exit-7 curl: Permission denied.");
  CHECK(result.host == "refusals/socket AF_INET 3");
  CHECK(result.control == "without seccomp: exit-7 curl: hung up; sink/connections 2");
  CHECK(verdict(one, ended(said, 0, 0), came) == "UNKNOWN: the host contradicts: refusals/socket AF_INET is 0, not 1");
  CHECK(verdict(one, ended(said, 3, 0), ended("exit-7", 0, 0)) ==
        "VACUOUS: in its control the host saw sink/connections 0, not 1");
  CHECK(verdict(one, ended("exit-7\tcurl: no such host", 3, 0), came) ==
        "ESCAPED: the probe told curl: no such host, not Permission denied");
  CHECK(verdict(one, ended("missing", 0, 0), ended("missing", 0, 0)) ==
        "UNKNOWN: the root file system has no program curl");
  auto old_kernel = ended("exit-7", 0, 0);
  old_kernel.record["sink"]["ipv6"] = "no";
  CHECK(verdict(one, ended(said, 3, 0), old_kernel).starts_with("VACUOUS: "));
  one.control.then = {"ok"};
  CHECK(verdict(one, ended(said, 3, 0), old_kernel) == "INAPPLICABLE: this kernel has no IPv6");
  auto no_ledger = ended(said, 0, 0);
  no_ledger.record.erase("evidence");
  CHECK(verdict(one, no_ledger, ended("ok", 0, 1)) == "UNKNOWN: the record has no refusals/socket AF_INET");
}

TEST_CASE("a planted file that was opened, or that nobody could watch") {
  Case one = sample_case();
  one.ledger.clear();
  one.planted = true;
  auto strict = scene("EPERM", 0), control = scene("ok", 0);
  CHECK(verdict(one, strict, control) == "VACUOUS: in its control the planted file was read and the host saw nothing");
  control.opened = 0;
  CHECK(verdict(one, strict, control).starts_with("VACUOUS: "));
  control.opened = 1;
  CHECK(verdict(one, strict, control) == "UNKNOWN: the planted file could not be watched");
  strict.opened = 1;
  CHECK(verdict(one, strict, control) == "UNKNOWN: the host contradicts: the planted file was opened");
  strict.opened = 0;
  CHECK(verdict(one, strict, control) == "REFUSED");
}

TEST_CASE("who is killed with its sandbox tells nothing, and only who is alone may be") {
  Case one = sample_case();
  one.ledger.clear();
  one.expect = {{"", "SIGKILL"}};
  SceneResult killed;
  CHECK(verdict(one, killed, scene("ok", 0)) == "UNKNOWN: the probe told nothing of it");
  one.alone = true;
  CHECK(verdict(one, killed, scene("ok", 0)) == "REFUSED");
  // A probe that came to its end without a word of the case was not killed.
  killed.whole = true;
  CHECK(verdict(one, killed, scene("ok", 0)) == "UNKNOWN: the probe told nothing of it");
}

TEST_CASE("a control that shows by other attempts what is looked for") {
  Case one = sample_case();
  one.ledger.clear();
  one.control = {};
  one.control.verbs = {"descriptors:/"};
  one.control.then = {"ok"};
  one.control.host = {{"outputs/alive", HostFact::Relation::equals, "present"}};
  SceneResult control;
  read_told("descriptors:/\tok\nend\tok\n", {"descriptors:/"}, control);
  CHECK(verdict(one, scene("EPERM", 0), control) ==
        "VACUOUS: in its control the host saw outputs/alive nowhere, not present");
  control.record = {{"outputs", nlohmann::json::array()}};
  CHECK(verdict(one, scene("EPERM", 0), control) ==
        "VACUOUS: in its control the host saw outputs/alive absent, not present");
  control.record = {{"outputs", {{{"path", "alive"}}}}};
  const auto result = judged(one, scene("EPERM", 0), control);
  CHECK(verdict(result) == "REFUSED");
  CHECK(result.control == "with descriptors:/: ok");
}

TEST_CASE("expectations by delegate come before those by cgroup layout") {
  Case one = sample_case();
  one.expect = {{"", "EPERM"}, {"v2", "ENOSYS"}, {"runc", "EACCES"}};
  HostFacts facts = host();
  CHECK(one.expected_of(facts) == "ENOSYS");
  facts.cgroup = CgroupLayout::hybrid;
  CHECK(one.expected_of(facts) == "EPERM");
  facts.delegate_name = "runc";
  CHECK(one.expected_of(facts) == "EACCES");
}

TEST_CASE("only whole answers to what was asked count") {
  const std::vector<std::string> asked = {"a", "b:1"};
  const auto told = [&](const std::string& text) {
    SceneResult result;
    read_told(text, asked, result);
    return std::to_string(result.told.size()) + (result.whole ? " whole" : "");
  };
  CHECK(told("a\tok\nb:1\tEPERM\tmade=1 x\nend\tok\n") == "2 whole");
  CHECK(told("a\tok\nb:1\tEPERM\n") == "2");
  CHECK(told("a\tok\nb:1\tEPE") == "1");
  CHECK(told("") == "0");
  CHECK(told("a\tok\na\tok\nend\tok\n") == "0");
  CHECK(told("c\tok\nend\tok\n") == "0");
  CHECK(told("a\tok\nend\tok\nb:1\tok\n") == "0");
  CHECK(told("a\tok\nend\tok\nrest") == "0");
  CHECK(told("a ok\nend\tok\n") == "0");
  CHECK(told("a\tok\nend\tno\n") == "1");
}

TEST_CASE("without benchsand's runtime nobody counts, and another layer may refuse") {
  Case one = sample_case();
  const auto works = scene("ok", 0);
  SceneResult plain = scene("EACCES", 0);
  CHECK(verdict(one, plain, works) == "ESCAPED: refused in another way: EACCES");
  plain.counted = false;
  CHECK(verdict(one, plain, works) == "REFUSED");
  CHECK(judged(one, plain, works).host == "not counted without benchsand's runtime");
  SceneResult absent = scene("ENOSYS", 0);
  absent.counted = false;
  CHECK(verdict(one, absent, works) == "REFUSED");
  one.control.then.push_back("ENOSYS");
  CHECK(verdict(one, absent, works) == "ESCAPED: refused in another way: ENOSYS");
  SceneResult worked = scene("ok", 0);
  worked.counted = false;
  CHECK(verdict(one, worked, works) == "ESCAPED: it worked");
}
