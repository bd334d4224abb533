// Real runs in which one observation at a time is withheld or falsified between the kernel and the judge.
#include "shim/run.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "oci/record.h"
#include "oci/report.h"
#include "shim/run_folder.h"
#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

RunReport run(const Host& host, const Policy& policy, const TempFolder& folder, const RunHooks& hooks = {}) {
  auto report = run_task(host, policy, folder.path("results"), hooks);
  if (!report) FAIL(report.error().message);
  return std::move(*report);
}

std::set<std::string> walls_of(const Verdict& verdict) {
  std::set<std::string> walls;
  for (const auto& failure : verdict.failures) walls.insert(failure.wall);
  return walls;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Observation falsified(const Observation& seen) {
  const auto* number = seen.value() ? std::get_if<std::uint64_t>(seen.value()) : nullptr;
  const std::string text = number || !seen.value() ? "garbage" : std::get<std::string>(*seen.value()) + " garbage";
  return {Value(text), "falsified " + seen.source};
}

// Each key, once withheld and once falsified, at `moment`; every one of these runs must name the key's wall.
void tamper_with_each(const std::string& engine, const std::string& moment, bool door_rules) {
  const TempFolder folder;
  const Host host = host_of(engine);
  const Policy policy = policy_of(folder, task_text("[/bin/touch, /output/ran]"));
  for (const auto& rule : wall_rules(policy, host.facts)) {
    if (rule.at_door != door_rules) continue;
    for (const bool withheld : {true, false}) {
      CAPTURE(rule.key);
      CAPTURE(withheld);
      bool seen = false;
      const RunHooks hooks = {[&](const std::string& now, Evidence& evidence) {
        const Observation* observation = evidence.find(rule.key);
        if (now != moment || !observation) return;
        seen = true;
        if (withheld)
          evidence.remove(rule.key);
        else
          evidence.replace(rule.key, falsified(*observation));
      }};
      const auto report = run(host, policy, folder, hooks);
      CHECK(seen);
      CHECK_FALSE(report.verdict.scored);
      CHECK(report.verdict.outcome == Outcome::refused);
      CHECK(walls_of(report.verdict).contains(rule.wall));
      CHECK(report.record["verdict"]["scored"] == false);
      CHECK(exit_status(report.verdict, report.end) == 3);
      // At the door the candidate must not have run at all.
      CHECK(report.record["outputs"].empty() == door_rules);
      CHECK((report.end.cause == Cause::not_started) == door_rules);
    }
  }
}

}  // namespace

TEST_CASE("a run of each delegate is scored and its record checks itself") {
  for (const std::string engine : {"crun", "runc"}) {
    CAPTURE(engine);
    const TempFolder folder;
    const Host host = host_of(engine);
    const auto report =
        run(host, policy_of(folder, task_text("[/bin/sh, -c, 'echo hello; echo answer > /output/a']")), folder);
    for (const auto& f : report.verdict.failures) FAIL_CHECK(f.wall << ": " << f.source << ": " << f.observed);
    CHECK(report.verdict.scored);
    CHECK(report.verdict.outcome == Outcome::succeeded);
    const auto record = nlohmann::json::parse(text_of(report.results + "/record.json"));
    CHECK(record == report.record);
    CHECK(digest_matches(record));
    CHECK(record_exit_status(record) == exit_status(report.verdict, report.end));
    CHECK(text_of(report.results + "/stdout") == "hello\n");
    CHECK(text_of(report.results + "/output/a") == "answer\n");
    CHECK(record["policy"]["seccomp"]["notify"].size() == 3);
    // The walls are complete: an observation for every rule, none besides.
    std::size_t observations = 0;
    for (const char* section : {"established", "spent", "after"})
      for (const auto& wall : record["evidence"][section]) observations += wall.size();
    CHECK(observations == wall_rules(policy_of(folder, task_text("[/bin/true]")), host.facts).size());
  }
}

TEST_CASE("an observation withheld or falsified at the door: the candidate never runs") {
  tamper_with_each("crun", "at the door", true);
}

TEST_CASE("an observation withheld or falsified at the end: never scored") {
  tamper_with_each("crun", "at the end", false);
}

TEST_CASE("a door that does not open leaves nothing, with either delegate") {
  for (const std::string engine : {"crun", "runc"}) {
    CAPTURE(engine);
    const TempFolder folder;
    const Host host = host_of(engine);
    const RunHooks hooks = {[](const std::string& now, Evidence& evidence) {
      if (now == "at the door") evidence.replace("memory.swap", {Value(std::string("max")), "memory.swap.max"});
    }};
    const auto report = run(host, policy_of(folder, task_text("[/bin/touch, /output/ran]")), folder, hooks);
    CHECK(walls_of(report.verdict) == std::set<std::string>{"memory"});
    CHECK(report.record["evidence"]["after"]["teardown"]["cgroup"]["observed"] == "gone");
    CHECK(report.record["evidence"]["after"]["teardown"]["pid_namespace"]["observed"] == "gone");
    CHECK(report.record["evidence"]["after"]["teardown"]["run_folder"]["observed"] == "gone");
    const auto left = host.cgroup.run_ids();
    REQUIRE(left);
    CHECK(std::find(left->begin(), left->end(), report.record["id"]) == left->end());
  }
}

TEST_CASE("a command that does not exist is a fault that says so, and leaves no results half made") {
  const TempFolder folder;
  const Host host = host_of("crun");
  const auto report = run(host, policy_of(folder, task_text("[/bin/no-such-program]")), folder);
  CHECK(report.verdict.outcome == Outcome::fault);
  CHECK(report.end.cause == Cause::not_started);
  CHECK(report.end.fault.find("/bin/no-such-program") != std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("results")))
    CHECK(entry.path().filename().string()[0] != '.');
}

TEST_CASE("a program that the kernel cannot execute is a fault, not the candidate's failure") {
  for (const std::string engine : {"crun", "runc"}) {
    CAPTURE(engine);
    const TempFolder folder;
    std::filesystem::create_directories(folder.path("task"));
    folder.write("task/program",
                 "\x7f"
                 "ELF and then nonsense");
    std::filesystem::permissions(folder.path("task/program"), std::filesystem::perms(0755));
    std::filesystem::create_directories(folder.path("rootfs"));
    REQUIRE(std::system(("cp -a " + cache() + "/tiny-rootfs/. " + folder.path("rootfs") + " && mkdir -p " +
                         folder.path("rootfs/task"))
                            .c_str()) == 0);
    const std::string task =
        "benchsand: 1\nname: t\nrootfs: ./rootfs\ncommand: [/task/program]\ninputs: [{source: ./task, target: "
        "/task}]\n";
    const auto report = run(host_of(engine), policy_of(folder, task), folder);
    CHECK_FALSE(report.verdict.scored);
    CHECK(report.verdict.outcome == Outcome::fault);
    CHECK(report.end.cause == Cause::not_started);
    CHECK(report.end.fault.starts_with("execute /task/program: "));
    CHECK(report.end.fault.size() > std::string("execute /task/program: ").size());
  }
}

TEST_CASE("what a candidate chose cannot forge a line of the report") {
  CHECK(on_one_line("a\nverdict SCORED\x1b[31m\x7f") == "a\\x0averdict SCORED\\x1b[31m\\x7f");
  CHECK(on_one_line("\xc2\x9b \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa8") ==
        "\\xc2\\x9b \\xe2\\x80\\xae \\xe2\\x81\\xa6 \\xe2\\x80\\xa8");
  CHECK(on_one_line("caf\xc3\xa9 \xe2\x82\xac 'x'") == "caf\xc3\xa9 \xe2\x82\xac 'x'");
  const TempFolder folder;
  const std::string command = R"([/bin/sh, -c, "echo > \"/output/$(printf 'new\\nverdict     SCORED')\"; exit 1"])";
  const auto report = run(host_of("crun"), policy_of(folder, task_text(command)), folder);
  const std::string table = verdict_table(report.record, false);
  CHECK(table.find("\nverdict     SCORED") == table.rfind("\nverdict     "));
  CHECK(table.find("output      new\\x0averdict     SCORED (1 bytes)") != std::string::npos);
}

TEST_CASE("one process makes a hundred runs without growing") {
  const TempFolder folder;
  const Host host = host_of("crun");
  const Policy policy = policy_of(folder, task_text("[/bin/true]"));
  CHECK(run(host, policy, folder).verdict.scored);
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 100; ++i) CHECK(run(host, policy, folder).verdict.scored);
  CHECK(open_descriptors() == before);
}
