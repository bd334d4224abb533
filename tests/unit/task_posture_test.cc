#include "oci/task_posture.h"

#include <doctest/doctest.h>

#include "tests/unit/fixtures.h"

using namespace benchsand;

namespace {

TaskPosture init() {
  TaskPosture posture;
  posture.namespaces = {11, 12, 13, 14, 15, 16, 17};
  posture.status.uid = posture.status.gid = {65534, 65534, 65534, 65534};
  posture.status.no_new_privs = 1;
  posture.status.seccomp_mode = 2;
  posture.status.seccomp_filters = 1;
  posture.cgroups = "4:memory:/benchsand/r/ct\n3:pids:/benchsand/r/ct\n0::/benchsand/r/ct\n";
  return posture;
}

// The one list that must say something, and what it must say.
struct Case {
  void (*change)(TaskPosture&);
  std::string PostureDifferences::*wall;
  std::string text;
};

}  // namespace

TEST_CASE("a task that is as init was differs in nothing, whatever its name and parent") {
  auto task = init();
  task.status.name = "sh";
  task.status.parent = 7;
  const auto found = posture_differences(task, init());
  CHECK(found.namespaces == "");
  CHECK(found.privileges == "");
  CHECK(found.syscalls == "");
  CHECK(found.cgroups == "");
}

TEST_CASE("each part of a posture that differs is named, and for its wall alone") {
  using Found = PostureDifferences;
  const std::vector<Case> cases = {
      {[](TaskPosture& t) { t.namespaces[0] = 1; }, &Found::namespaces, "mnt 1 instead of 11"},
      {[](TaskPosture& t) { t.namespaces[1] = 1; }, &Found::namespaces, "pid 1 instead of 12"},
      {[](TaskPosture& t) { t.namespaces[2] = 1; }, &Found::namespaces, "ipc 1 instead of 13"},
      {[](TaskPosture& t) { t.namespaces[3] = 1; }, &Found::namespaces, "uts 1 instead of 14"},
      {[](TaskPosture& t) { t.namespaces[4] = 1; }, &Found::namespaces, "net 1 instead of 15"},
      {[](TaskPosture& t) { t.namespaces[5] = 1; }, &Found::namespaces, "cgroup 1 instead of 16"},
      {[](TaskPosture& t) { t.namespaces[6] = 0; }, &Found::namespaces, "user 0 instead of 17"},
      {[](TaskPosture& t) { t.status.uid[3] = 0; }, &Found::privileges,
       "uid 65534 65534 65534 0 instead of 65534 65534 65534 65534"},
      {[](TaskPosture& t) { t.status.gid[0] = 5; }, &Found::privileges,
       "gid 5 65534 65534 65534 instead of 65534 65534 65534 65534"},
      {[](TaskPosture& t) {
         t.status.groups = {0, 4};
       },
       &Found::privileges, "groups 0 4 instead of none"},
      {[](TaskPosture& t) { t.status.cap_inheritable = 1; }, &Found::privileges,
       "inheritable capabilities 1 instead of 0"},
      {[](TaskPosture& t) { t.status.cap_permitted = 16; }, &Found::privileges,
       "permitted capabilities 10 instead of 0"},
      {[](TaskPosture& t) { t.status.cap_effective = 0x1ffffffffff; }, &Found::privileges,
       "effective capabilities 1ffffffffff instead of 0"},
      {[](TaskPosture& t) { t.status.cap_bounding = ~std::uint64_t{0}; }, &Found::privileges,
       "bounding capabilities ffffffffffffffff instead of 0"},
      {[](TaskPosture& t) { t.status.cap_ambient = 0xab; }, &Found::privileges, "ambient capabilities ab instead of 0"},
      {[](TaskPosture& t) { t.status.no_new_privs = 0; }, &Found::privileges, "no_new_privs 0 instead of 1"},
      {[](TaskPosture& t) { t.status.seccomp_mode = 0; }, &Found::syscalls, "seccomp mode 0 instead of 2"},
      {[](TaskPosture& t) { t.status.seccomp_filters = 2; }, &Found::syscalls, "filters 2 instead of 1"},
      {[](TaskPosture& t) {
         t.cgroups.replace(t.cgroups.find("3:"), std::string("3:pids:/benchsand/r/ct").size(), "3:pids:/");
       },
       &Found::cgroups, "in 3:pids:/"},
      {[](TaskPosture& t) { t.cgroups.erase(t.cgroups.find("0::")); }, &Found::cgroups, "in fewer hierarchies"},
      {[](TaskPosture& t) { t.cgroups += "9:misc:/\n"; }, &Found::cgroups, "in 9:misc:/"},
      {[](TaskPosture& t) { t.cgroups = ""; }, &Found::cgroups, "in fewer hierarchies"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    auto task = init();
    c.change(task);
    const auto found = posture_differences(task, init());
    CHECK(found.*c.wall == c.text);
    for (const auto wall : {&Found::namespaces, &Found::privileges, &Found::syscalls, &Found::cgroups})
      if (wall != c.wall) CHECK(found.*wall == "");
  }
}

TEST_CASE("what differs in many ways is said in one list") {
  auto task = init();
  task.namespaces[0] = 1;
  task.namespaces[4] = 2;
  task.status.seccomp_mode = task.status.seccomp_filters = 0;
  const auto found = posture_differences(task, init());
  CHECK(found.namespaces == "mnt 1 instead of 11, net 2 instead of 15");
  CHECK(found.syscalls == "seccomp mode 0 instead of 2, filters 0 instead of 1");
}

TEST_CASE("the postures of captured processes at the door differ from a host's") {
  for (const std::string door : kDoors) {
    CAPTURE(door);
    auto held = init();
    const auto status = parse_process_status(fixture(door + "status"), door);
    REQUIRE(status);
    held.status = *status;
    auto host = held;
    host.status.seccomp_mode = host.status.seccomp_filters = host.status.no_new_privs = 0;
    host.status.cap_effective = host.status.cap_permitted = host.status.cap_bounding = 0x1ffffffffff;
    CHECK(posture_differences(held, held).privileges == "");
    CHECK(posture_differences(host, held).privileges.find("effective capabilities 1ffffffffff") != std::string::npos);
    CHECK(posture_differences(host, held).syscalls.find("seccomp mode 0") != std::string::npos);
  }
}

TEST_CASE("the root of every hierarchy, and nothing else, is root cgroups") {
  CHECK(in_root_cgroups("4:memory:/\n0::/\n"));
  CHECK(in_root_cgroups("4:memory:/../..\n0::/..\n"));
  CHECK(in_root_cgroups("1:name=systemd:/\n"));
  for (const char* text :
       {"", "\n", "4:memory:/a\n0::/\n", "4:memory:/\n0::/..a\n", "0::/benchsand/r/ct\n", "0::x\n"}) {
    CAPTURE(text);
    CHECK_FALSE(in_root_cgroups(text));
  }
}

TEST_CASE("many findings stay a short text") {
  Findings findings;
  CHECK(findings.text() == "none");
  findings.add("task 1", "");
  CHECK(findings.none());
  for (int i = 1; i <= 4; ++i) findings.add("task " + std::to_string(i), "x");
  CHECK(findings.text() == "task 1: x; task 2: x; task 3: x; task 4: x");
  for (int i = 5; i <= 1000; ++i) findings.add("task", "x");
  CHECK(findings.text() == "task 1: x; task 2: x; task 3: x; task 4: x; and 996 more");
  CHECK_FALSE(findings.none());
}
