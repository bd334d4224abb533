// What an engine says of a container, beside the record: a difference takes the score away and names both values.
#include "oci/engine_says.h"

#include <doctest/doctest.h>

#include <functional>

#include "sample_record.h"

using namespace benchsand;
using nlohmann::json;

namespace {

const std::string kId(64, 'a');

json record() {
  json record = sample::record(nullptr);
  record["evidence"]["spent"]["memory"]["oom_kills"]["observed"] = 0;
  record["digest"] = record_digest(record);
  return record;
}

// As Docker and Podman show a container that has ended, and is what it was asked to be.
json inspect() {
  const json limits = record()["policy"]["limits"];
  return {{"Id", kId},
          {"HostConfig",
           {{"Memory", limits["memory_bytes"]},
            {"MemorySwap", limits["memory_bytes"]},
            {"PidsLimit", limits["processes"]},
            {"NetworkMode", "none"},
            {"ReadonlyRootfs", true},
            {"Privileged", false}}},
          {"Mounts", json::array()},
          {"NetworkSettings", {{"Networks", {{"none", json::object()}}}, {"IPAddress", ""}}},
          {"State", {{"Running", false}, {"ExitCode", 0}, {"OOMKilled", false}, {"Pid", 0}}}};
}

std::vector<Failure> with(const std::function<void(json&)>& change) {
  EngineSays says{inspect(), inspect()};
  change(says.ended);
  return disagreements(ApiKind::docker, kId, says, record());
}

}  // namespace

TEST_CASE("an engine that says what the kernel does breaks nothing") {
  CHECK(with([](json&) {}).empty());
}

TEST_CASE("each word of an engine that differs from the kernel breaks its wall") {
  struct Lie {
    const char *pointer, *wall;
    json value;
  };
  const Lie lies[] = {{"/Id", "evidence", std::string(64, 'b')},
                      {"/HostConfig/Memory", "memory", 1},
                      {"/HostConfig/MemorySwap", "memory", -1},
                      {"/HostConfig/PidsLimit", "processes", 0},
                      {"/HostConfig/NetworkMode", "network", "bridge"},
                      {"/HostConfig/ReadonlyRootfs", "rootfs", false},
                      {"/HostConfig/Privileged", "privileges", true},
                      {"/Mounts", "mounts", {{{"Source", "/etc"}}}},
                      {"/NetworkSettings/Networks", "network", {{"bridge", json::object()}}},
                      {"/NetworkSettings/IPAddress", "network", "172.17.0.2"},
                      {"/State/Running", "teardown", true},
                      {"/State/ExitCode", "evidence", 1},
                      {"/State/OOMKilled", "memory", true}};
  for (const auto& lie : lies) {
    const std::string pointer = lie.pointer;
    CAPTURE(pointer);
    const auto failures = with([&](json& said) { said[json::json_pointer(lie.pointer)] = lie.value; });
    REQUIRE(failures.size() == 1);
    CHECK(failures[0].wall == lie.wall);
    CHECK(failures[0].source.find("docker inspect: ") == 0);
    CHECK_FALSE(failures[0].expected.empty());
    CHECK_FALSE(failures[0].observed.empty());
  }
}

TEST_CASE("a word that is missing is a difference") {
  for (const char* key : {"Memory", "MemorySwap", "PidsLimit", "NetworkMode", "ReadonlyRootfs", "Privileged"}) {
    CAPTURE(key);
    const auto failures = with([&](json& said) { said["HostConfig"].erase(key); });
    REQUIRE(failures.size() == 1);
    CHECK(failures[0].observed == "missing");
  }
  CHECK(with([](json& said) { said = json::array(); }).size() > 5);
}

TEST_CASE("what was said before the start is compared too") {
  EngineSays says{inspect(), inspect()};
  says.created["HostConfig"]["Privileged"] = true;
  const auto failures = disagreements(ApiKind::podman, kId, says, record());
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].source == "podman inspect: /HostConfig/Privileged, before the start");
}

TEST_CASE("an engine that sees no swap limit says that it asks for none") {
  EngineSays says{inspect(), inspect(), true};
  CHECK(disagreements(ApiKind::docker, kId, says, record()).size() == 2);
  says.created["HostConfig"]["MemorySwap"] = says.ended["HostConfig"]["MemorySwap"] = -1;
  CHECK(disagreements(ApiKind::docker, kId, says, record()).empty());
}

TEST_CASE("a signal is compared as a shell shows it") {
  json ended = record();
  ended["end"] = {{"cause", "signaled"}, {"exit_code", nullptr}, {"signal", 9}};
  EngineSays says{inspect(), inspect()};
  CHECK(disagreements(ApiKind::docker, kId, says, ended).size() == 1);
  says.ended["State"]["ExitCode"] = 137;
  CHECK(disagreements(ApiKind::docker, kId, says, ended).empty());
}

TEST_CASE("the process that an engine takes for init") {
  json said = inspect();
  CHECK(pid_disagreement(ApiKind::docker, said, 7).empty());  // it has ended, says the engine
  said["State"] = {{"Running", true}, {"Pid", 8}};
  REQUIRE(pid_disagreement(ApiKind::docker, said, 7).size() == 1);
  CHECK(pid_disagreement(ApiKind::docker, said, 7)[0].observed == "8");
  CHECK(pid_disagreement(ApiKind::docker, said, 8).empty());
}

TEST_CASE("a record loses its score and keeps its digest") {
  const json refused = unscored(record(), {{"memory", "1", "2", "docker inspect"}}, "");
  CHECK(refused["verdict"]["scored"] == false);
  CHECK(refused["verdict"]["outcome"] == "refused");
  CHECK(refused["verdict"]["tier"].is_null());
  CHECK(refused["verdict"]["failures"].size() == 1);
  CHECK(digest_matches(refused));
  const json fault = unscored(record(), {}, "the engine hangs");
  CHECK(fault["verdict"]["outcome"] == "fault");
  CHECK(fault["verdict"]["failures"][0]["observed"] == "the engine hangs");
  CHECK(digest_matches(fault));
  const json noticed = with_notices(record(), {"a warning"});
  CHECK(noticed["verdict"]["scored"] == true);
  CHECK(noticed["notices"].back() == "a warning");
  CHECK(digest_matches(noticed));
}
