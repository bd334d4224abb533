#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "oci/policy.h"
#include "oci/units.h"

using namespace benchsand;

namespace {

Profile house() {
  Profile profile;
  profile.name = "strict";
  for (const LimitField& field : kLimitFields) {
    profile.limits[std::string(field.name)] = Bound{.standard = 1000, .maximum = 1'000'000'000};
  }
  profile.limits["cpu_time"] = {.standard = 2'000'000, .maximum = 600'000'000};
  profile.limits["wall_time"] = {.standard = 10'000'000, .maximum = 3'600'000'000};
  profile.limits["memory"] = {.standard = 256U << 20U, .maximum = 4'294'967'296};
  profile.limits["disk"] = {.standard = 64U << 20U, .maximum = 1U << 30U};
  profile.limits["cpus"] = {.standard = 1000, .maximum = 64'000};
  profile.stdio_total_bytes = 4'294'967'296;
  profile.memory_headroom_bytes = 32U << 20U;
  profile.collect = {.files = 1024, .bytes = 64U << 20U, .depth = 16};
  profile.uid = 65534;
  profile.gid = 65533;
  profile.timeline_us = 100'000;
  profile.seccomp.allow = {"read"};
  profile.egress_counters = {EgressCounter::sockets, EgressCounter::connects, EgressCounter::packets};
  return profile;
}

TaskSpec job() {
  TaskSpec task;
  task.name = "job";
  task.rootfs = "./rootfs";
  task.command = {"/bin/true"};
  return task;
}

const TaskSource kSource{.sha256 = "aa", .directory = "/srv/tasks"};
const HostFacts kHost{
    .cgroup = CgroupLayout::v2, .kernel = "6", .delegate_name = "crun", .delegate_version = "1", .processors = 2};

Result<Policy> decided(const TaskSpec& task, const Profile& profile = house()) {
  return decide(task, kSource, profile, "bb", kHost);
}

AskedBound asked(const std::string& text, Unit unit) {
  const auto quantity = parse_quantity(text, unit);
  REQUIRE(quantity.has_value());
  return {.usable = quantity->usable, .value = quantity->value, .text = text, .where = "t.yaml:7:3"};
}

// The message of a task that must be refused.
std::string refusal(const TaskSpec& task, const Profile& profile = house()) {
  const auto policy = decided(task, profile);
  REQUIRE_FALSE(policy.has_value());
  CHECK(policy.error().kind == Error::Kind::usage);
  return policy.message();
}

const GrantedMount* find_mount(const std::vector<GrantedMount>& granted, const std::string& target) {
  const auto found =
      std::find_if(granted.begin(), granted.end(), [&](const auto& mount) { return mount.target == target; });
  return found == granted.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("what a task names is told with its place, where it has one") {
  TaskSpec task = job();
  task.inputs = {{"a", "b"}, {"/c", "/d"}};
  task.workdir = "w";
  task.places = {{"inputs[0].target", "t.yaml:8:25"}, {"inputs[1].source", "t.yaml:9:14"}, {"workdir", "t.yaml:3:1"}};
  const std::string normal = " is not an absolute path without '.', '..' and empty parts";
  const auto refused = decide(task, {"", "/srv"}, house(), "", {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "t.yaml:8:25: inputs[0].target: \"b\"" + normal + "\nt.yaml:3:1: workdir: \"w\"" + normal);
  task.inputs.erase(task.inputs.begin());
  task.workdir.reset();
  task.places = {{"inputs[0].source", "t.yaml:9:14"}, {"rootfs", "t.yaml:4:9"}};
  const auto policy = decide(task, {"", "/srv"}, house(), "", {});
  REQUIRE(policy);
  CHECK(policy->places ==
        std::map<std::string, std::string>{
            {"image", ""}, {"input for /d", "t.yaml:9:14: "}, {"rootfs", "t.yaml:4:9: "}, {"stdin", ""}});
}

TEST_CASE("a task that asks for nothing gets every field decided") {
  const auto policy = decided(job());
  REQUIRE(policy.has_value());
  CHECK(policy->task_name == "job");
  CHECK(policy->task_sha256 == "aa");
  CHECK(policy->profile_name == "strict");
  CHECK(policy->profile_sha256 == "bb");
  CHECK(policy->command == std::vector<std::string>{"/bin/true"});
  CHECK(policy->env == std::vector<std::string>{"HOME=/output", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=/output"});
  CHECK(policy->workdir == "/output");
  CHECK(policy->rootfs == "/srv/tasks/rootfs");
  CHECK(policy->stdin_file.empty());
  CHECK(policy->inputs.empty());
  CHECK(policy->output == "/output");
  CHECK(policy->stdio_total_bytes == 4'294'967'296);
  CHECK(policy->collect == house().collect);
  CHECK(policy->uid == 65534);
  CHECK(policy->gid == 65533);
  CHECK(policy->seccomp == house().seccomp);
  CHECK(policy->filter_proof == FilterProof::dump);
  CHECK(policy->rootfs_mount == RootfsMount::overlay);
  CHECK(policy->user_namespace == UserNamespace::own);
  CHECK(policy->relaxations.empty());
  CHECK(policy->notices.empty());
  for (const LimitField& field : kLimitFields) {
    CHECK(policy->limits.*field.member == house().limits.at(std::string(field.name)).standard);
  }
}

TEST_CASE("every limit: an unusable bound becomes the default, and the notice says so") {
  for (const LimitField& field : kLimitFields) {
    for (const std::string text : {"0", "-1", "nan", "inf", "-inf"}) {
      const std::string name(field.name);
      CAPTURE(name);
      CAPTURE(text);
      TaskSpec task = job();
      task.limits[name] = asked(text, field.unit);
      const auto policy = decided(task);
      REQUIRE(policy.has_value());
      const std::uint64_t standard = house().limits.at(name).standard;
      CHECK(policy->limits.*field.member == standard);
      CHECK(policy->notices ==
            std::vector<std::string>{"t.yaml:7:3: limits." + name + ": \"" + text +
                                     "\" is not a usable bound; the default of profile \"strict\" holds, " +
                                     format_quantity(standard, field.unit)});
    }
  }
}

TEST_CASE("every limit: the maximum can be asked for, one more is an error") {
  for (const LimitField& field : kLimitFields) {
    const std::string name(field.name);
    CAPTURE(name);
    Profile profile = house();
    // Room for any disk, and none beyond it.
    profile.limits["memory"] = {.standard = 4'294'967'296, .maximum = 4'294'967'296};
    const std::uint64_t maximum = profile.limits.at(name).maximum;
    TaskSpec task = job();
    task.limits[name] = {.usable = true, .value = maximum, .text = "THAT", .where = "--set limits." + name};
    const auto policy = decided(task, profile);
    REQUIRE(policy.has_value());
    CHECK(policy->limits.*field.member == maximum);

    task.limits[name].value = maximum + 1;
    CHECK(refusal(task, profile) == "--set limits." + name + ": \"THAT\" is over the maximum of profile \"strict\", " +
                                        format_quantity(maximum, field.unit));
  }
}

TEST_CASE("every limit: a profile without its bound decides nothing") {
  for (const LimitField& field : kLimitFields) {
    const std::string name(field.name);
    Profile profile = house();
    profile.limits.erase(name);
    CHECK(refusal(job(), profile).find("profile \"strict\": no bound for limits." + name) != std::string::npos);
  }
}

TEST_CASE("a limit that no table names is an error") {
  TaskSpec task = job();
  task.limits["gpus"] = {.usable = true, .value = 1, .text = "1", .where = "t.yaml:7:3"};
  CHECK(refusal(task) == "t.yaml:7:3: limits.gpus: unknown limit");
}

TEST_CASE("memory must hold disk and headroom") {
  struct Case {
    std::string memory, disk, message;
  };
  for (const Case& c : std::vector<Case>{
           {"96MiB", "64MiB", ""},
           {"98303KiB", "64MiB",
            "limits.memory: 98303KiB does not hold limits.disk 64MiB and the headroom of profile \"strict\", 32MiB; "
            "ask for "
            "more memory or less disk"},
           {"64MiB", "64MiB",
            "limits.memory: 64MiB does not hold limits.disk 64MiB and the headroom of profile \"strict\", 32MiB; ask "
            "for more "
            "memory or less disk"},
           {"1MiB", "1GiB",
            "limits.memory: 1MiB does not hold limits.disk 1GiB and the headroom of profile \"strict\", 32MiB; ask for "
            "more "
            "memory or less disk"},
       }) {
    CAPTURE(c.memory);
    TaskSpec task = job();
    task.limits["memory"] = asked(c.memory, Unit::bytes);
    task.limits["disk"] = asked(c.disk, Unit::bytes);
    if (c.message.empty())
      CHECK(decided(task).has_value());
    else
      CHECK(refusal(task) == c.message);
  }
}

TEST_CASE("little memory and no word about disk: the default disk shrinks, and the policy says so") {
  TaskSpec task = job();
  task.limits["memory"] = asked("64MiB", Unit::bytes);
  const auto policy = decided(task);
  REQUIRE(policy.has_value());
  CHECK(policy->limits.disk_bytes == 32 << 20);
  CHECK(policy->notices ==
        std::vector<std::string>{"limits.disk: 32MiB instead of the default of profile \"strict\", which limits.memory "
                                 "64MiB does not hold beside the headroom"});
  task.limits["memory"] = asked("32MiB", Unit::bytes);
  CHECK(refusal(task) ==
        "limits.memory: 32MiB does not hold limits.disk 64MiB and the headroom of profile \"strict\", 32MiB; ask for "
        "more memory or less disk");
}

TEST_CASE("a limit too small for a container to start is an error") {
  const std::tuple<std::string, Unit, std::string, std::string> rows[] = {{"cpus", Unit::milli, "0.01", "0.009"},
                                                                          {"processes", Unit::count, "2", "1"},
                                                                          {"open_files", Unit::count, "64", "63"}};
  for (const auto& [limit, unit, enough, too_little] : rows) {
    CAPTURE(limit);
    TaskSpec task = job();
    task.limits[limit] = asked(enough, unit);
    CHECK(decided(task).has_value());
    task.limits[limit] = asked(too_little, unit);
    CHECK(refusal(task) ==
          "limits." + limit + ": " + too_little + " is too little for a container to start, which takes " + enough);
  }
}

TEST_CASE("what the host or the other limits make unreachable is said") {
  TaskSpec task = job();
  task.limits["cpu_time"] = asked("20s", Unit::duration_us);
  auto policy = decided(task);
  REQUIRE(policy.has_value());
  CHECK(policy->limits.cpu_time_us == 20'000'000);
  CHECK(policy->limits.wall_time_us == 10'000'000);
  CHECK(policy->notices ==
        std::vector<std::string>{"limits.cpu_time: 20s cannot be used up by 1 cpus within limits.wall_time 10s"});

  task.limits["cpus"] = asked("2", Unit::milli);
  CHECK(decided(task)->notices.empty());

  task.limits["cpus"] = asked("2.5", Unit::milli);
  policy = decided(task);
  REQUIRE(policy.has_value());
  CHECK(policy->notices == std::vector<std::string>{"limits.cpus: 2.5 is more than this host has, 2"});
}

TEST_CASE("the environment is the task's and three decided names, sorted") {
  TaskSpec task = job();
  task.output = "/out";
  task.env = {{"TMPDIR", "/out/t"}, {"A", "x=y\nz"}, {"A-", "1"}, {"PATH", "/p"}, {"a b", ""}};
  const auto policy = decided(task);
  REQUIRE(policy.has_value());
  CHECK(policy->env == std::vector<std::string>{"A-=1", "A=x=y\nz", "HOME=/out", "PATH=/p", "TMPDIR=/out/t", "a b="});
}

TEST_CASE("paths of the host are relative to the task file and stay as written") {
  TaskSpec task = job();
  task.rootfs = "../images/a b'\n";
  task.stdin_file = "./q $(id).txt";
  task.inputs = {{.source = "/abs/data", .target = "/z"}, {.source = "in", .target = "/a"}};
  const auto policy = decided(task);
  REQUIRE(policy.has_value());
  CHECK(policy->rootfs == "/srv/tasks/../images/a b'\n");
  CHECK(policy->stdin_file == "/srv/tasks/q $(id).txt");
  CHECK(policy->inputs == std::vector<InputMount>{{"/srv/tasks/in", "/a"}, {"/abs/data", "/z"}});

  const auto at_root = decide(task, {.sha256 = "aa", .directory = "/"}, house(), "bb", kHost);
  REQUIRE(at_root.has_value());
  CHECK(at_root->stdin_file == "/q $(id).txt");
}

TEST_CASE("each rule refuses with its own message") {
  const std::string normal = " is not an absolute path without '.', '..' and empty parts";
  struct Case {
    std::function<void(TaskSpec&)> change;
    std::string message;
  };
  const std::vector<Case> cases{
      {[](TaskSpec& t) { t.command = {}; }, "command: the program is missing"},
      {[](TaskSpec& t) {
         t.command = {"", "x"};
       },
       "command: the program is missing"},
      {[](TaskSpec& t) {
         t.command = {"a", std::string("b\0c", 3)};
       },
       "command: text cannot hold a NUL byte"},
      {[](TaskSpec& t) {
         t.env = {{"A=B", "c"}};
       },
       "env: \"A=B\" cannot be a name: it is empty or holds '=' or NUL"},
      {[](TaskSpec& t) {
         t.env = {{"", "c"}};
       },
       "env: \"\" cannot be a name: it is empty or holds '=' or NUL"},
      {[](TaskSpec& t) {
         t.env = {{std::string("A\0", 2), "c"}};
       },
       "env: \"A\\x00\" cannot be a name: it is empty or holds '=' or NUL"},
      {[](TaskSpec& t) {
         t.env = {{"A", std::string("\0", 1)}};
       },
       "env[\"A\"]: text cannot hold a NUL byte"},
      {[](TaskSpec& t) { t.rootfs = ""; }, "rootfs: the text is empty"},
      {[&](TaskSpec& t) { t.workdir = "work"; }, "workdir: \"work\"" + normal},
      {[&](TaskSpec& t) { t.workdir = "/a/../b"; }, "workdir: \"/a/../b\"" + normal},
      {[&](TaskSpec& t) { t.output = "output"; }, "output: \"output\"" + normal},
      {[&](TaskSpec& t) { t.output = ""; }, "output: \"\"" + normal},
      {[&](TaskSpec& t) { t.output = "//output"; }, "output: \"//output\"" + normal},
      {[&](TaskSpec& t) { t.output = "/output/"; }, "output: \"/output/\"" + normal},
      {[&](TaskSpec& t) { t.output = "/./output"; }, "output: \"/./output\"" + normal},
      {[&](TaskSpec& t) { t.output = "/a/.."; }, "output: \"/a/..\"" + normal},
      {[&](TaskSpec& t) { t.output = std::string("/a\0b", 4); }, "output: \"/a\\x00b\"" + normal},
      {[](TaskSpec& t) { t.output = "/"; }, "output: \"/\" is the root file system itself"},
      {[](TaskSpec& t) { t.output = "/proc"; }, "output: \"/proc\" is in /proc, which belongs to the kernel"},
      {[](TaskSpec& t) { t.output = "/dev/shm"; }, "output: \"/dev/shm\" is in /dev, which belongs to the kernel"},
      {[](TaskSpec& t) { t.output = "/sys/fs/cgroup"; },
       "output: \"/sys/fs/cgroup\" is in /sys, which belongs to the kernel"},
      {[&](TaskSpec& t) {
         t.inputs = {{"a", "a"}};
       },
       "inputs[0].target: \"a\"" + normal},
      {[](TaskSpec& t) {
         t.inputs = {{"a", "/proc/self"}};
       },
       "inputs[0].target: \"/proc/self\" is in /proc, which belongs to the kernel"},
      {[](TaskSpec& t) {
         t.inputs = {{"a", "/output"}};
       },
       "inputs[0].target: \"/output\" overlaps output \"/output\""},
      {[](TaskSpec& t) {
         t.inputs = {{"a", "/output/in"}};
       },
       "inputs[0].target: \"/output/in\" overlaps output \"/output\""},
      {[](TaskSpec& t) {
         t.output = "/a/out";
         t.inputs = {{"a", "/a"}};
       },
       "inputs[0].target: \"/a\" overlaps output \"/a/out\""},
      {[](TaskSpec& t) {
         t.inputs = {{"a", "/a"}, {"b", "/a"}};
       },
       "inputs[1].target: \"/a\" overlaps inputs[0].target \"/a\""},
      {[](TaskSpec& t) {
         t.inputs = {{"a", "/a"}, {"b", "/a/b"}};
       },
       "inputs[1].target: \"/a/b\" overlaps inputs[0].target \"/a\""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.message);
    TaskSpec task = job();
    c.change(task);
    CHECK(refusal(task) == c.message);
  }
}

TEST_CASE("names that only begin alike are not inside each other") {
  TaskSpec task = job();
  task.output = "/process";
  task.inputs = {{"a", "/output"}, {"b", "/output2"}, {"c", "/developers"}, {"d", "/..."}};
  task.workdir = "/";
  const auto policy = decided(task);
  if (!policy) FAIL(policy.message());
  CHECK(policy->workdir == "/");
}

TEST_CASE("all problems are reported at once") {
  TaskSpec task = job();
  task.command = {};
  task.output = "/proc";
  task.workdir = "x";
  CHECK(refusal(task) ==
        "command: the program is missing\n"
        "output: \"/proc\" is in /proc, which belongs to the kernel\n"
        "workdir: \"x\" is not an absolute path without '.', '..' and empty parts");
}

TEST_CASE("a relative directory of the task file is refused: paths would depend on where benchsand runs") {
  const auto policy = decide(job(), {.sha256 = "aa", .directory = "tasks"}, house(), "bb", kHost);
  REQUIRE_FALSE(policy.has_value());
  CHECK(policy.message() == "the directory of the task file, \"tasks\", is not absolute");
}

TEST_CASE("another profile than asked for, and a weaker proof, are on record") {
  TaskSpec task = job();
  task.profile = "python";
  Profile profile = house();
  profile.filter_proof = FilterProof::compiled;
  profile.rootfs_mount = RootfsMount::bind;
  profile.user_namespace = UserNamespace::host;
  auto policy = decided(task, profile);
  REQUIRE(policy.has_value());
  CHECK(policy->notices == std::vector<std::string>{"profile: the task asks for \"python\", the run uses \"strict\""});
  CHECK(policy->relaxations ==
        std::vector<std::string>{"filter_proof: compiled", "rootfs_mount: bind", "user_namespace: host"});
  CHECK(policy->filter_proof == FilterProof::compiled);
  CHECK(policy->rootfs_mount == RootfsMount::bind);
  CHECK(policy->user_namespace == UserNamespace::host);

  profile = house();
  profile.name = "python";
  CHECK(decided(task, profile)->notices.empty());
  CHECK(decided(job(), profile)->notices ==
        std::vector<std::string>{"profile: the task asks for \"strict\", the run uses \"python\""});
}

TEST_CASE("an egress counter that is left out is on record, each by its name") {
  Profile profile = house();
  CHECK(names_of(decided(job(), profile)->egress_counters) == "sockets connects packets");
  profile.egress_counters = {EgressCounter::connects};
  CHECK(names_of(decided(job(), profile)->egress_counters) == "connects");
  CHECK(decided(job(), profile)->relaxations ==
        std::vector<std::string>{"egress_counters: without sockets", "egress_counters: without packets"});
  profile.egress_counters = {};
  CHECK(decided(job(), profile)->relaxations.size() == 3);
}

TEST_CASE("the processors of the profile are the policy's, and too few for cpus is a notice") {
  CHECK(decided(job())->cpuset == "");
  Profile profile = house();
  profile.cpuset = "0,2-3";
  TaskSpec task = job();
  CHECK(decided(task, profile)->cpuset == "0,2-3");
  CHECK(decided(task, profile)->notices.empty());
  profile.cpuset = "1";
  task.limits["cpus"] = asked("1", Unit::milli);
  CHECK(decided(task, profile)->notices.empty());
  task.limits["cpus"] = asked("1.5", Unit::milli);
  CHECK(decided(task, profile)->notices ==
        std::vector<std::string>{"limits.cpus: 1.5 is more than the cpuset of profile \"strict\" has, 1"});
}

TEST_CASE("the granted mounts: one writable, the kernel's own, inputs, masks") {
  TaskSpec task = job();
  task.inputs = {{"a", "/task"}, {"b", "/data"}};
  const auto policy = decided(task);
  REQUIRE(policy.has_value());
  const auto granted = granted_mounts(*policy);
  CHECK(granted.size() == 6 + policy->masked_paths.size() + policy->readonly_paths.size());

  std::vector<std::string> writable, firm;
  for (const GrantedMount& mount : granted) {
    if (mount.writable) writable.push_back(mount.target);
    if (!mount.optional) firm.push_back(mount.target);
  }
  CHECK(writable == std::vector<std::string>{"/output"});
  CHECK(firm == std::vector<std::string>{"/", "/proc", "/dev", "/data", "/task", "/output"});

  using Options = std::set<std::string>;
  CHECK(find_mount(granted, "/proc")->required == Options{"nosuid", "nodev", "noexec"});
  CHECK(find_mount(granted, "/proc")->types == Options{"proc"});
  CHECK(find_mount(granted, "/dev")->required == Options{"nosuid", "noexec"});
  CHECK(find_mount(granted, "/task")->required == Options{"nosuid", "nodev"});
  CHECK(find_mount(granted, "/output")->required == Options{"nosuid", "nodev"});
  CHECK(find_mount(granted, "/output")->types == Options{"tmpfs"});
  CHECK(find_mount(granted, "/proc/kcore")->mask);
  CHECK(find_mount(granted, "/proc/kcore")->optional);
  CHECK_FALSE(find_mount(granted, "/proc/sys")->mask);
  CHECK(find_mount(granted, "/proc/sys")->types == Options{"proc"});
  CHECK(find_mount(granted, "/sys") == nullptr);
  CHECK(find_mount(granted, "/dev/shm") == nullptr);
}

TEST_CASE("cgroup layouts have names") {
  CHECK(to_text(CgroupLayout::v1) == std::string("v1"));
  CHECK(to_text(CgroupLayout::hybrid) == std::string("hybrid"));
  CHECK(to_text(CgroupLayout::v2) == std::string("v2"));
}
