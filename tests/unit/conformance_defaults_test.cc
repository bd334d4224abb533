// Cases in containers that an engine makes by itself: what counts as refused there, and what must not. And such reports beside others.
#include <doctest/doctest.h>

#include "conformance/compare.h"
#include "conformance/judge_defaults.h"
#include "conformance/report_table.h"
#include "conformance/reports.h"
#include "conformance/runsc_bundle.h"
#include "oci/default_body.h"
#include "sample.h"
#include "sample_suite.h"

using namespace benchsand;
using namespace benchsand::conformance;
using nlohmann::json;
namespace suite = ::sample::suite;

namespace {

Case sample_case(const std::string& verb = "bpf-map") {
  Case one;
  one.id = "kernel.sample";
  one.wall = "syscalls";
  one.attempt = "make a BPF map";
  one.verb = verb;
  one.expect = {{"", "EPERM"}};
  one.layer = "seccomp";
  one.control.down = {Relaxation::seccomp};
  one.control.then = {"ok", "EBADF", "ENOENT", "EACCES"};
  one.if_control = {{"ENOSYS", "not built into this kernel"}};
  return one;
}

SceneResult scene(const Case& one, const std::string& outcome, const std::string& detail = "") {
  SceneResult result;
  read_told(one.verb + "\t" + outcome + (detail.empty() ? "" : "\t" + detail) + "\nend\tok\n", {one.verb}, result);
  return result;
}

std::string verdict(const Case& one, const SceneResult& there, const std::string& without = "ok") {
  const SceneResult control = scene(one, without);
  const auto result = judge_default_case(one, benchsand::sample::host(CgroupLayout::v2), there, &control);
  return std::string(to_text(result.verdict)) + (result.reason.empty() ? "" : ": " + result.reason);
}

std::string verdict(const std::string& inside, const std::string& without = "ok") {
  const Case one = sample_case();
  return verdict(one, scene(one, inside), without);
}

}  // namespace

TEST_CASE("by an engine itself, whoever refuses does, and what is let through is told") {
  for (const char* refusal : {"EPERM", "EACCES", "EROFS", "SIGSYS", "ENOSYS", "ENETUNREACH", "empty"})
    CHECK(verdict(refusal) == "REFUSED");
  CHECK(verdict("ok") == "ESCAPED: it worked");
  CHECK(verdict("EBADF") == "ESCAPED: let through: it came to EBADF, as without walls");
  CHECK(verdict("EACCES", "EACCES") == "VACUOUS: without walls it came to the same, EACCES");
  // It worked where it must not, so it does not matter what its control came to.
  CHECK(verdict("ok", "EPERM") == "ESCAPED: it worked");
}

TEST_CASE("by an engine itself, what shows nothing does not pass") {
  CHECK(verdict("ENOENT") == "VACUOUS: let through, and nothing was there: ENOENT without walls too");
  CHECK(verdict("EPERM", "EPERM").starts_with("VACUOUS: without the wall it came to EPERM"));
  CHECK(verdict("EPERM", "ENOSYS") == "INAPPLICABLE: not built into this kernel");
  CHECK(verdict("EIO") == "UNKNOWN: EIO is no refusal, and not what the attempt comes to without walls");
  CHECK(verdict("timeout") == "UNKNOWN: the probe could not attempt it: timeout");
  const Case one = sample_case();
  CHECK(verdict(one, SceneResult()) == "UNKNOWN: the probe told nothing of it");
  SceneResult broken;
  broken.fault = "the engine is gone";
  CHECK(verdict(one, broken) == "UNKNOWN: there was no container: the engine is gone");
}

TEST_CASE("by an engine itself, the host may contradict a refusal, and some only it can tell") {
  Case one = sample_case("fill:/output/large:68157440");
  one.host = {{"spent/output/bytes_used", HostFact::Relation::equals, "64"}};
  SceneResult there = scene(one, "ENOSPC", "bytes=64");
  CHECK(verdict(one, there) == "UNKNOWN: only a record of benchsand's would tell: spent/output/bytes_used");
  there.record["evidence"]["spent"]["output"]["bytes_used"]["observed"] = 65;
  CHECK(verdict(one, there) == "UNKNOWN: the host contradicts: spent/output/bytes_used is 65, not 64");
  there.record["evidence"]["spent"]["output"]["bytes_used"]["observed"] = 64;
  CHECK(verdict(one, there) == "REFUSED");
  one.shown = "bytes=63";
  CHECK(verdict(one, there) == "ESCAPED: the probe told bytes=64, not bytes=63");

  one = sample_case("read:/planted");
  one.planted = true;
  there = scene(one, "EPERM");
  SceneResult control = scene(one, "ok");
  control.opened = 1;
  const auto planted = [&] {
    const auto result = judge_default_case(one, benchsand::sample::host(CgroupLayout::v2), there, &control);
    return std::string(to_text(result.verdict)) + ": " + result.reason;
  };
  CHECK(planted() == "UNKNOWN: only a record of benchsand's would tell: who opens the planted file");
  there.opened = 1;
  CHECK(planted() == "UNKNOWN: the host contradicts: the planted file was opened");
  there.opened = 0;
  CHECK(planted() == "REFUSED: ");
}

TEST_CASE("by an engine itself, an effect is looked for where the attempt has to work") {
  Case one = sample_case("daemonise:/output/alive:300");
  one.expect = {{"", "ok"}};
  one.control.then = {"ok"};
  one.host = {{"outputs/alive", HostFact::Relation::equals, "absent"},
              {"end/cause", HostFact::Relation::equals, "exited"}};
  SceneResult there = scene(one, "ok");
  there.record = {{"outputs", json::array()}};
  CHECK(verdict(one, there) == "REFUSED");
  there.record["outputs"] = {{{"path", "alive"}}};
  CHECK(verdict(one, there) == "ESCAPED: outputs/alive is present, not absent");
  one.layer = "collection";
  CHECK(verdict(one, there) == "VACUOUS: nobody takes anything out of the container there");
  one.layer = "teardown";
  one.host = {{"spent/cpu-time/used_us", HostFact::Relation::at_most, "1"}};
  CHECK(verdict(one, there) == "UNKNOWN: only a record of benchsand's would tell: spent/cpu-time/used_us");
  CHECK(verdict(one, scene(one, "EPERM")) == "UNKNOWN: it came to EPERM, so there is no effect to look for");
}

TEST_CASE("a network of the suite's own is no wall of an engine's") {
  for (const char* verb : {"connect:192.0.2.1:80", "connect:[2001:db8::1]:443", "connect:[::ffff:169.254.169.254]:80",
                           "send:255.255.255.255:9"})
    CHECK(leaves_the_host(verb));
  for (const char* verb : {"connect:127.0.0.1:22", "connect:[::1]:22", "connect:0.0.0.0:80", "send:127.0.0.53:53",
                           "listen:0.0.0.0:8080", "socket:tcp", "connect-named:/run/x"})
    CHECK_FALSE(leaves_the_host(verb));
  const Case one = sample_case("connect:192.0.2.1:80");
  SceneResult there = scene(one, "ENETUNREACH");
  CHECK(verdict(one, there) == "REFUSED");  // by the engine's own: there is no way out
  there.record["sink"] = {{"connections", 0}, {"datagrams", 0}};
  CHECK(verdict(one, there) ==
        "VACUOUS: let through into the suite's own network, where nothing is there: ENETUNREACH");
}

TEST_CASE("what another kernel answers tells less") {
  const Case one = sample_case();
  const auto own = [&](const char* outcome) {
    SceneResult there = scene(one, outcome);
    there.own_kernel = true;
    return verdict(one, there);
  };
  CHECK(own("EPERM") == "REFUSED");
  CHECK(own("ok") == "ESCAPED: it worked, by another kernel than the host's");
  CHECK(own("EBADF") == "VACUOUS: another kernel's EBADF does not tell whether it was let through");
  CHECK(own("ENOENT") == "VACUOUS: let through, and nothing was there: ENOENT without walls too");
}

TEST_CASE("a bundle for runsc has no filter, and no limit that counts runsc's own threads") {
  const auto changed = runsc_config(
      R"({"linux": {"seccomp": {}, "resources": {"pids": {"limit": 32}, "memory": {"limit": 1}}, "maskedPaths": ["/proc/keys"]}})",
      "/benchsand/r1/ct");
  CHECK(
      json::parse(*changed) ==
      json::parse(
          R"({"linux": {"resources": {"memory": {"limit": 1}}, "maskedPaths": ["/proc/keys"], "cgroupsPath": "/benchsand/r1/ct"}})"));
  CHECK(runsc_config("{}", "/x").error().message == "make a bundle for runsc: its config.json has no linux");
  CHECK_FALSE(runsc_config("{", "/x"));
}

TEST_CASE("a container of an engine's own is asked for with nothing but its bounds") {
  DefaultBody wanted{"benchsand-r1",  "sha256:aa", "", {"/probe", "x"}, {{"benchsand.run", "r1"}},
                     "/benchsand/r1", false,       ""};
  CHECK(default_body(ApiKind::docker, wanted) ==
        json::parse(R"({"Image": "sha256:aa", "Cmd": ["/probe", "x"], "Labels": {"benchsand.run": "r1"},
                        "HostConfig": {"CgroupParent": "/benchsand/r1"}})"));
  CHECK(default_body(ApiKind::podman, wanted) ==
        json::parse(R"({"name": "benchsand-r1", "image": "sha256:aa", "command": ["/probe", "x"],
                        "labels": {"benchsand.run": "r1"}, "cgroup_parent": "/benchsand/r1"})"));
  wanted.cgroup_parent = "";
  wanted.joins = "c1";
  CHECK(default_body(ApiKind::docker, wanted)["HostConfig"] ==
        json::parse(R"({"NetworkMode": "container:c1", "PidsLimit": 512, "Memory": 1073741824})"));
  const json podman = default_body(ApiKind::podman, wanted);
  CHECK(podman["netns"] == json::parse(R"({"nsmode": "container", "value": "c1"})"));
  CHECK(podman["resource_limits"] == json::parse(R"({"pids": {"limit": 512}, "memory": {"limit": 1073741824}})"));
}

TEST_CASE("a report of an engine alone cannot be taken for benchsand's") {
  SuiteReport report = suite::every_verdict();
  CHECK(report_table(report, 0, false).find("NOT BENCHSAND") == std::string::npos);
  report.about.engine = std::string("docker") + kWithoutBenchsand;
  const std::string words = "these are the walls of docker, and none of benchsand's";
  CHECK(report_table(report, 0, false).starts_with("NOT BENCHSAND  " + words + "\n"));
  CHECK(report_table(report, 0, false).find("the documentation is out of date") == std::string::npos);
  for (const char* format : {"markdown", "tap", "github"})
    CHECK(find_report_format(format)->write(report).find(words) != std::string::npos);
  for (const char* format : {"json", "junit", "sarif", "metrics"})
    CHECK(find_report_format(format)->write(report).find("docker without benchsand") != std::string::npos);
}

TEST_CASE("nor can one of a bundle that nobody watched") {
  SuiteReport report = suite::every_verdict();
  report.about.engine = std::string("runsc") + kWithoutDoor;
  CHECK(whose_walls(report.about) ==
        "these are the walls that runsc makes of benchsand's bundle, and nobody watched them");
  CHECK(comparison_page({report})->find("| benchsand's bundle in runsc |") != std::string::npos);
}

TEST_CASE("reports beside each other") {
  SuiteReport ours =
      suite::report({suite::one("a.same", CaseVerdict::refused), suite::one("a.x", CaseVerdict::refused, 2)});
  SuiteReport theirs =
      suite::report({suite::one("a.same", CaseVerdict::refused), suite::one("a.x", CaseVerdict::escaped, 2)});
  theirs.about.engine = std::string("docker") + kWithoutBenchsand;
  theirs.cases[1].inside = "ok | <b> detail";
  const std::string page = *comparison_page({ours, theirs});
  for (const char* line :
       {"|  | benchsand on crun | docker alone |\n", "| stands | 2 | 1 |\n", "| **falls** | 0 | 1 |\n",
        "| 2 open a connection out | stands | **falls** |\n", "| `syscalls` | 2 of 2 | 1 of 2 |\n",
        "(a.x) | stands, `EPERM` | **falls**, `ok` |\n", "| measured | `2026-11-30, benchsand 0.1.0` |"})
    CHECK_MESSAGE(page.find(line) != std::string::npos, line, "\n", page);
  CHECK(page.find("(a.same)") == std::string::npos);
  CHECK(page.find("<b>") == std::string::npos);
  theirs.about.cases_sha256 = "other";
  CHECK(comparison_page({ours, theirs}).error().message ==
        "compare reports: that of docker without benchsand is of another probe or of other attempts than that of crun; "
        "make them with one benchsand and the same options");
  CHECK(comparison_page({suite::report({})}).error().message == "compare reports: in one of them no attempt was made");
}
