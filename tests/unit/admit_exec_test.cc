#include "oci/admit_exec.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "fixtures.h"
#include "oci/tighten.h"
#include "sample.h"

using namespace benchsand;
using nlohmann::json;

namespace {

ExecAdmission exec_of(const std::string& text, const Policy& policy = sample::policy(),
                      bool limits_at_the_door = false) {
  auto admission = admit_exec(text, policy, limits_at_the_door);
  if (!admission) FAIL(admission.message());
  return *admission;
}

std::string exec_message(const std::string& text) {
  const auto admission = admit_exec(text, sample::policy(), false);
  REQUIRE_FALSE(admission.has_value());
  CHECK(admission.error().kind == Error::Kind::usage);
  return admission.message();
}

template <class Result>
bool edits(const Result& result, const std::string& field) {
  return std::any_of(result.edits.begin(), result.edits.end(), [&](const Edit& edit) { return edit.field == field; });
}

// Everything but the command, the environment, the directory and the terminal is the policy's.
void check_walls(const ExecAdmission& admission) {
  const json none = json::array();
  json process = admission.process;
  CHECK(process["user"] == json({{"uid", 65534}, {"gid", 65534}}));
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"})
    CHECK(process["capabilities"][set] == none);
  CHECK(process["noNewPrivileges"] == true);
  CHECK(process["oomScoreAdj"] == 1000);
  CHECK(process["rlimits"].size() == process_limits(sample::policy()).size());
  for (const char* known : {"user", "capabilities", "noNewPrivileges", "oomScoreAdj", "rlimits", "args", "env", "cwd"})
    CHECK(process.erase(known) == 1);
  for (const char* optional : {"terminal", "apparmorProfile", "selinuxLabel", "consoleSize"}) process.erase(optional);
  CHECK(process.empty());
}

HostFacts v2() {
  return sample::host(CgroupLayout::v2);
}

Tightened tightened(const std::string& text, const HostFacts& host = v2()) {
  auto result = tighten(text, sample::policy(), 32 << 20, host, {});
  if (!result) FAIL(result.message());
  return *result;
}

std::string walls_of(const std::vector<Refused>& refusals) {
  std::string walls;
  for (const auto& refusal : refusals) walls += (walls.empty() ? "" : " ") + refusal.wall;
  return walls;
}

}  // namespace

TEST_CASE("what engines write for an exec, privileged too, has the walls of the container") {
  for (const char* name :
       {"docker-exec", "docker-exec-privileged", "docker-exec-terminal", "podman-exec", "podman-exec-privileged"}) {
    CAPTURE(name);
    Policy policy = sample::policy();
    if (std::string(name) == "docker-exec-terminal") take_terminal(policy);
    const auto admission = exec_of(fixture("oci/" + std::string(name) + ".process.json"), policy);
    CHECK(admission.refusals.empty());
    check_walls(admission);
    CHECK(admission.process["args"] == json({"true"}));
    CHECK(admission.terminal == (std::string(name) == "docker-exec-terminal"));
    CHECK(admission.process.value("terminal", false) == admission.terminal);
    for (const char* field : {"/process/user", "/process/noNewPrivileges", "/process/capabilities/effective"})
      CHECK(edits(admission, field));
  }
}

TEST_CASE("the environment of an exec is the engine's, with the policy's own where it has none") {
  auto admission = exec_of(fixture("oci/docker-exec-privileged.process.json"));
  CHECK(admission.process["env"] ==
        json({"HOME=/output", "HOSTNAME=cbcc33ec89ff",
              "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=/output", "X=y"}));
  CHECK(admission.process["cwd"] == "/srv");
  admission = exec_of(R"({"args":["a"],"cwd":"/","env":["HOME=/root","NOTIFY_SOCKET=/x","A"]})");
  CHECK(admission.process["env"] == json({"HOME=/output", "PATH=/bin", "TMPDIR=/output"}));
  for (const char* field : {"/process/env/0", "/process/env/1", "/process/env/2"}) CHECK(edits(admission, field));
  CHECK(walls_of(exec_of(R"({"args":["a"],"cwd":"/","env":["LISTEN_FDS=1"]})").refusals) == "privileges");
}

TEST_CASE("one change of an exec, and what becomes of it") {
  const std::pair<const char*, json> kChanges[] = {
      {"user", {{"uid", 0}, {"gid", 0}, {"additionalGids", {0, 4}}, {"umask", 0}}},
      {"noNewPrivileges", false},
      {"oomScoreAdj", -1000},
      {"scheduler", {{"policy", "SCHED_FIFO"}, {"priority", 9}}},
      {"ioPriority", {{"class", "IOPRIO_CLASS_RT"}}},
      {"execCPUAffinity", {{"initial", "0"}}},
      {"future", {{"a", 1}}},
  };
  for (const auto& [name, value] : kChanges) {
    CAPTURE(name);
    json process = {{"args", {"a"}}, {"cwd", "/"}};
    process[name] = value;
    const auto admission = exec_of(process.dump());
    CHECK(edits(admission, std::string("/process/") + name));
    check_walls(admission);
  }
}

TEST_CASE("of the rlimits the lower ones hold, and the policy's are always there") {
  const auto limit = [](const char* type, std::uint64_t soft, std::uint64_t hard) {
    return json{{"type", type}, {"soft", soft}, {"hard", hard}};
  };
  json process = {{"args", {"a"}}, {"cwd", "/"}};
  process["rlimits"] = json::array({limit("RLIMIT_NOFILE", 100, 200), limit("RLIMIT_CORE", UINT64_MAX, UINT64_MAX),
                                    limit("RLIMIT_NPROC", 1000, 1000), limit("RLIMIT_CPU", 1, 9)});
  const auto admission = exec_of(process.dump());
  CHECK(admission.process["rlimits"] ==
        json::array({limit("RLIMIT_NOFILE", 100, 100), limit("RLIMIT_CORE", 1, 1), limit("RLIMIT_CPU", 1, 1),
                     limit("RLIMIT_NICE", 0, 0), limit("RLIMIT_RTPRIO", 0, 0)}));
  CHECK(edits(admission, "/process/rlimits"));
  check_walls(admission);
  CHECK_FALSE(exec_of(process.dump(), sample::policy(), true).process.contains("rlimits"));
}

TEST_CASE("an exec has a terminal only where the container has one") {
  const std::string text = fixture("oci/docker-exec-terminal.process.json");
  CHECK(walls_of(exec_of(text).refusals) == "stdio");
  Policy policy = sample::policy();
  take_terminal(policy);
  CHECK(exec_of(text, policy).refusals.empty());
}

TEST_CASE("a profile can deny exec") {
  Policy policy = sample::policy();
  const std::string text = R"({"args":["a"],"cwd":"/"})";
  CHECK(exec_of(text, policy).refusals.empty());
  policy.exec = ExecRule::deny;
  CHECK(walls_of(exec_of(text, policy).refusals) == "processes");
}

TEST_CASE("a text that is no process") {
  CHECK(exec_message("{}") == "process: \"/args\": is missing");
  CHECK(exec_message(R"({"args":["a"]})") == "process: \"/cwd\": is missing");
  CHECK(exec_message(R"({"args":[],"cwd":"/"})") == "process: \"/args\": the program is missing");
  CHECK(exec_message(R"({"args":["a"],"cwd":"/","cwd":"/"})") == "process: \"/cwd\": the key stands twice");
  CHECK(exec_message(R"({"args":["a"],"cwd":"/","Capabilities":{}})") ==
        "process: \"/Capabilities\": some readers take it for \"capabilities\"");
  CHECK(exec_message(R"({"args":["a"],"cwd":"/","rlimits":[{"soft":"9"}]})") ==
        "process: \"/rlimits/0/soft\": an integer is due here");
  CHECK(walls_of(exec_of(R"({"args":["a"],"cwd":"srv"})").refusals) == "mounts");
}

TEST_CASE("an update can lower every limit") {
  const auto result = tightened(
      R"({"memory":{"limit":134217728,"swap":268435456},"pids":{"limit":10},"cpu":{"quota":50000,"period":100000}})");
  CHECK(result.refusals.empty());
  CHECK(result.limits.memory_bytes == 128 << 20);
  CHECK(result.limits.processes == 10);
  CHECK(result.limits.cpus_milli == 500);
  CHECK(edits(result, "/memory/swap"));
  CHECK(result.resources == json({{"memory", {{"limit", 134217728}, {"swap", 134217728}}},
                                  {"pids", {{"limit", 10}}},
                                  {"cpu", {{"quota", 50000}, {"period", 100000}}},
                                  {"unified", {{"memory.oom.group", "1"}, {"memory.swap.max", "0"}}}}));
}

TEST_CASE("an update can raise no limit, and is told all of them again") {
  for (
      const char* text :
      {R"({"memory":{"limit":1073741824,"swap":-1},"pids":{"limit":-1},"cpu":{"quota":-1,"period":100000}})",
       R"({"memory":{"limit":-1},"pids":{"limit":5000},"cpu":{"quota":900000}})",
       R"({"memory":{"limit":18446744073709551615},"pids":{"limit":18446744073709551615},"cpu":{"quota":18446744073709551615}})"}) {
    CAPTURE(text);
    const auto result = tightened(text);
    CHECK(result.limits == sample::policy().limits);
    CHECK(result.refusals.empty());
    for (const char* field : {"/memory/limit", "/pids/limit", "/cpu/quota"}) CHECK(edits(result, field));
    CHECK(result.resources["memory"] == json({{"limit", 256 << 20}, {"swap", 256 << 20}}));
    CHECK(result.resources["pids"]["limit"] == 32);
    CHECK(result.resources["cpu"]["quota"] == 100000);
    CHECK_FALSE(result.resources.contains("devices"));
  }
  const auto nothing = tightened("{}");
  CHECK(nothing.limits == sample::policy().limits);
  CHECK(nothing.edits.empty());
  CHECK(nothing.resources.contains("unified"));
  CHECK_FALSE(tightened("{}", sample::host(CgroupLayout::hybrid)).resources.contains("unified"));
  CHECK(tightened(R"({"memory":{"limit":0},"pids":{"limit":0},"cpu":{"quota":0,"period":0}})").edits.empty());
}

TEST_CASE("what docker update sends") {
  CHECK(walls_of(tightened(fixture("oci/docker-update.resources.json")).refusals) ==
        "memory");  // 64MiB: less than the output
  auto result = tightened(fixture("oci/docker-update-loose.resources.json"));
  CHECK(result.refusals.empty());
  CHECK(result.limits == sample::policy().limits);
  CHECK(edits(result, "/memory/limit"));
  result = tightened(fixture("oci/docker-update-cpu.resources.json"));
  CHECK(walls_of(result.refusals) == "cpu-time");
  CHECK(result.limits.cpus_milli == 500);
}

TEST_CASE("one change of an update, and what becomes of it") {
  const std::pair<const char*, const char*> kRefused[] = {
      {R"({"memory":{"limit":100663295}})", "memory"},     {R"({"pids":{"limit":1}})", "processes"},
      {R"({"cpu":{"quota":999,"period":100000}})", ""},    {R"({"cpu":{"quota":900,"period":100000}})", "cpu-time"},
      {R"({"cpu":{"cpus":"0-1"}})", "cpu-time"},           {R"({"cpu":{"mems":"0"}})", "memory"},
      {R"({"unified":{"memory.max":"max"}})", "evidence"}, {R"({"memory":{"limit":100663296}})", ""}};
  for (const auto& [text, walls] : kRefused) CHECK_MESSAGE(walls_of(tightened(text).refusals) == walls, text);
  const std::pair<const char*, const char*> kIgnored[] = {
      {R"({"devices":[{"allow":true,"access":"rwm"}]})", "/devices"},
      {R"({"blockIO":{"weight":100}})", "/blockIO"},
      {R"({"cpu":{"shares":9}})", "/cpu/shares"},
      {R"({"memory":{"reservation":5}})", "/memory/reservation"},
      {R"({"rdma":{"a":{"hcaHandles":1}}})", "/rdma"},
      {R"({"future":1})", "/future"}};
  for (const auto& [text, field] : kIgnored) {
    const auto result = tightened(text);
    CHECK_MESSAGE(edits(result, field), text);
    CHECK(result.refusals.empty());
    CHECK(result.resources == tightened("{}").resources);
  }
  for (const char* text :
       {"", "[]", R"({"memory":{"limit":"1"}})", R"({"Memory":{}})", R"({"pids":{"limit":1,"limit":2}})"}) {
    const auto refused = tighten(text, sample::policy(), 32 << 20, v2(), {});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == Error::Kind::usage);
  }
}
