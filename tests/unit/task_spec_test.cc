#include "oci/task_spec.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "oci/units.h"
#include "oci/yaml_tree.h"

using namespace benchsand;

namespace {

const std::filesystem::path kSpecs = std::filesystem::path(BENCHSAND_SOURCE_DIR) / "tests" / "specs";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

// The names in a folder that have both NAME.yaml and NAME.txt; one without the other fails.
std::set<std::string> case_names(const std::filesystem::path& folder) {
  std::set<std::string> specs, expectations;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    (entry.path().extension() == ".yaml" ? specs : expectations).insert(entry.path().stem().string());
  }
  REQUIRE(specs == expectations);
  return specs;
}

std::string list(const std::vector<std::string>& texts) {
  std::string line;
  for (const std::string& text : texts) {
    if (!line.empty()) line += ' ';
    line += in_quotes(text);
  }
  return line;
}

std::string describe(const TaskSpec& task) {
  std::string text = "name " + in_quotes(task.name) + "\n";
  if (task.profile) text += "profile " + in_quotes(*task.profile) + "\n";
  text += task.image ? "image " + in_quotes(to_text(*task.image)) : "rootfs " + in_quotes(task.rootfs);
  text += "\ncommand " + list(task.command) + "\n";
  for (const auto& [name, value] : task.env) text += "env " + in_quotes(name) + " " + in_quotes(value) + "\n";
  if (task.workdir) text += "workdir " + in_quotes(*task.workdir) + "\n";
  if (task.stdin_file) text += "stdin " + in_quotes(*task.stdin_file) + "\n";
  for (const InputMount& input : task.inputs)
    text += "input " + in_quotes(input.source) + " " + in_quotes(input.target) + "\n";
  text += "output " + in_quotes(task.output) + "\n";
  for (const auto& [name, bound] : task.limits) {
    text += "limit " + name + " " + (bound.usable ? std::to_string(bound.value) : "unusable") + " as " +
            in_quotes(bound.text) + " at " + bound.where + "\n";
  }
  return text;
}

TaskSpec minimal() {
  TaskSpec task;
  task.name = "t";
  task.rootfs = "/r";
  task.command = {"/bin/true"};
  return task;
}

}  // namespace

TEST_CASE("what names something outside the task knows its place") {
  const auto task = parse_task_spec(
      "benchsand: 1\nname: t\nprofile: pyhton\nrootfs: r\ncommand: [x]\nstdin: s\n"
      "inputs:\n  - {source: a, target: /b}\noutput: o\nworkdir: w\n",
      "task.yaml");
  REQUIRE(task);
  const std::map<std::string, std::string> places = {{"profile", "task.yaml:3:10"},
                                                     {"rootfs", "task.yaml:4:9"},
                                                     {"stdin", "task.yaml:6:8"},
                                                     {"inputs[0].source", "task.yaml:8:14"},
                                                     {"inputs[0].target", "task.yaml:8:25"},
                                                     {"output", "task.yaml:9:9"},
                                                     {"workdir", "task.yaml:10:10"}};
  CHECK(task->places == places);
  CHECK(task->place_of("rootfs") == "task.yaml:4:9: ");
  CHECK(task->place_of("image") == "");
}

TEST_CASE("specs/good: each task is read as its .txt says") {
  const auto names = case_names(kSpecs / "good");
  CHECK(names.size() >= 10);
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto task = parse_task_spec(read_file(kSpecs / "good" / (name + ".yaml")), name + ".yaml");
    if (!task) FAIL_CHECK(task.message());
    if (task) CHECK(describe(*task) == read_file(kSpecs / "good" / (name + ".txt")));
  }
}

TEST_CASE("specs/bad: each task is refused with exactly the message in its .txt") {
  const auto names = case_names(kSpecs / "bad");
  CHECK(names.size() >= 80);
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto task = parse_task_spec(read_file(kSpecs / "bad" / (name + ".yaml")), name + ".yaml");
    CHECK_FALSE(task.has_value());
    if (task) continue;
    CHECK(task.error().kind == Error::Kind::usage);
    CHECK(task.message() + "\n" == read_file(kSpecs / "bad" / (name + ".txt")));
  }
}

TEST_CASE("every limit of the table is read by its name") {
  for (const LimitField& field : kLimitFields) {
    const std::string name(field.name);
    CAPTURE(name);
    const auto task =
        parse_task_spec("benchsand: 1\nname: t\nrootfs: r\ncommand: [x]\nlimits: {" + name + ": 3}\n", "t.yaml");
    REQUIRE(task.has_value());
    REQUIRE(task->limits.size() == 1);
    const AskedBound& bound = task->limits.at(name);
    CHECK(bound.usable);
    CHECK(bound.value == parse_quantity("3", field.unit)->value);
    CHECK(bound.text == "3");
    CHECK(bound.where == "t.yaml:5:" + std::to_string(12 + name.size()));
  }
}

TEST_CASE("a file larger than the parser can take in reasonable time is refused") {
  const auto task = parse_task_spec("benchsand: 1\n# " + std::string(128 * 1024, 'x') + "\n", "t.yaml");
  REQUIRE_FALSE(task.has_value());
  CHECK(task.message() == "t.yaml:1:1: error: the file is larger than 131072 bytes\n  benchsand: 1\n  ^");
}

TEST_CASE("a file with very many problems shows the first ones") {
  std::string text = "benchsand: 1\nname: t\nrootfs: r\ncommand: [x]\n";
  for (int i = 0; i < 25; ++i) text += "zz" + std::to_string(i) + ": 1\n";
  const auto task = parse_task_spec(text, "t.yaml");
  REQUIRE_FALSE(task.has_value());
  CHECK(task.message().find("t.yaml:24:1: error: unknown key \"zz19\"") != std::string::npos);
  CHECK(task.message().find("zz20") == std::string::npos);
  CHECK(task.message().ends_with("\nand 5 more"));
}

TEST_CASE("--set replaces a limit, and the later one wins") {
  TaskSpec task = minimal();
  REQUIRE(apply_setting(task, {.key = "limits.memory", .value = "64MiB"}).has_value());
  REQUIRE(apply_setting(task, {.key = "limits.memory", .value = "32MiB"}).has_value());
  REQUIRE(apply_setting(task, {.key = "limits.cpus", .value = "-1"}).has_value());
  CHECK(describe(task) ==
        "name \"t\"\nrootfs \"/r\"\ncommand \"/bin/true\"\noutput \"/output\"\n"
        "limit cpus unusable as \"-1\" at --set limits.cpus\n"
        "limit memory 33554432 as \"32MiB\" at --set limits.memory\n");
}

TEST_CASE("--set refuses everything else") {
  struct Case {
    std::string key, value, message;
  };
  for (const Case& c : std::vector<Case>{
           {"profile", "python", "--set profile: only limits.* can be set"},
           {"limits", "1", "--set limits: only limits.* can be set"},
           {"", "1", "--set : only limits.* can be set"},
           {"limits.", "1", "--set limits.: unknown limit \"\""},
           {"limits.memroy", "1", "--set limits.memroy: unknown limit \"memroy\"; did you mean \"memory\"?"},
           {"limits.mmeroy", "1", "--set limits.mmeroy: unknown limit \"mmeroy\"; did you mean \"memory\"?"},
           {"limits.mmeroyy", "1", "--set limits.mmeroyy: unknown limit \"mmeroyy\""},
           {"limits.memory.max", "1", "--set limits.memory.max: unknown limit \"memory.max\""},
           {"limits.memory", "",
            "--set limits.memory: \"\" is not a size: a number with B, KiB, MiB, GiB, KB, MB or GB, or plain bytes"},
           {"limits.processes", "5s", "--set limits.processes: \"5s\" is not a count: a whole number without a unit"},
       }) {
    CAPTURE(c.key);
    TaskSpec task = minimal();
    const auto result = apply_setting(task, {.key = c.key, .value = c.value});
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().kind == Error::Kind::usage);
    CHECK(result.message() == c.message);
    CHECK(task.limits.empty());
  }
}
