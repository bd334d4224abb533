// A policy as the body of an engine's create call: no field is forgotten, and each stands where the table says.
#include "oci/api_body.h"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "oci/bundle.h"
#include "oci/record.h"
#include "sample.h"

using namespace benchsand;
using nlohmann::json;

namespace {

BodyPlaces places() {
  BodyPlaces places;
  places.name = "benchsand-r1";
  places.image = "sha256:aa";
  places.runtime = "benchsand";
  places.labels = {{"benchsand.run", "r1"}};
  places.plain = BodyPlaces::Plain{
      "/benchsand/r1", {"/.gate", "prog"}, {{"/host/in", "/task"}}, "/host/out", "/host/seccomp.json"};
  return places;
}

std::set<std::string> fields_of_policy() {
  std::set<std::string> names;
  const json document = policy_json(sample::policy());
  for (const auto& [name, value] : document.items()) {
    if (name != "limits") {
      names.insert(name);
      continue;
    }
    for (const auto& [limit, bound] : value.items()) names.insert("limits." + limit);
  }
  return names;
}

// What changes each field, for those that have a place in some body.
const std::map<std::string, std::function<void(Policy&)>>& changes() {
  static const std::map<std::string, std::function<void(Policy&)>> all{
      {"command", [](Policy& p) { p.command = {"other"}; }},
      {"env", [](Policy& p) { p.env = {"OTHER=1"}; }},
      {"workdir", [](Policy& p) { p.workdir = "/other"; }},
      {"output", [](Policy& p) { p.output = "/other"; }},
      {"limits.cpu_time_us", [](Policy& p) { p.limits.cpu_time_us = 77'000'000; }},
      {"limits.memory_bytes", [](Policy& p) { p.limits.memory_bytes = 99 << 20; }},
      {"limits.processes", [](Policy& p) { p.limits.processes = 7; }},
      {"limits.open_files", [](Policy& p) { p.limits.open_files = 77; }},
      {"limits.cpus_milli", [](Policy& p) { p.limits.cpus_milli = 1500; }},
      {"uid", [](Policy& p) { p.uid = 7; }},
      {"gid", [](Policy& p) { p.gid = 7; }},
      {"masked_paths", [](Policy& p) { p.masked_paths = {"/proc/other"}; }},
      {"readonly_paths", [](Policy& p) { p.readonly_paths = {"/proc/other"}; }},
      {"cpuset", [](Policy& p) { p.cpuset = "1"; }},
      {"seccomp", [](Policy& p) { p.seccomp.allow = {"read"}; }},
  };
  return all;
}

json at(const json& body, const char* pointer) {
  const json::json_pointer place(pointer);
  return body.contains(place) ? body.at(place) : json();
}

}  // namespace

TEST_CASE("every field of the policy has a row that says where it goes") {
  std::set<std::string> rows;
  for (const auto& place : field_places()) CHECK_MESSAGE(rows.insert(place.field).second, place.field, " stands twice");
  CHECK(rows == fields_of_policy());
}

TEST_CASE("docs/engine-run.md has the table") {
  std::ifstream file(std::string(BENCHSAND_SOURCE_DIR) + "/docs/engine-run.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  // Put field_places_page() there when this fails.
  CHECK_MESSAGE(page.find("\n" + field_places_page() + "\n") != std::string::npos, field_places_page());
}

TEST_CASE("a field that changes changes its place in each body") {
  for (const auto& place : field_places()) {
    const auto change = changes().find(place.field);
    if (change == changes().end()) continue;
    for (const auto kind : {ApiKind::docker, ApiKind::podman}) {
      const char* pointer = kind == ApiKind::docker ? place.docker : place.podman;
      if (pointer[0] == '[') continue;
      CAPTURE(place.field);
      CAPTURE(to_text(kind));
      Policy policy = sample::policy();
      BodyPlaces where = places();
      if (std::string(place.field) == "command") where.plain.reset();
      const json before = create_body(kind, policy, where);
      change->second(policy);
      const json after = create_body(kind, policy, where);
      CHECK(at(before, pointer) != at(after, pointer));
    }
  }
}

TEST_CASE("a place that no change above reaches is in the bodies all the same") {
  for (const auto& place : field_places()) {
    for (const auto kind : {ApiKind::docker, ApiKind::podman}) {
      const char* pointer = kind == ApiKind::docker ? place.docker : place.podman;
      if (pointer[0] == '[' || std::string(place.field) == "cpuset") continue;
      CAPTURE(place.field);
      CHECK(create_body(kind, sample::policy(), places()).contains(json::json_pointer(pointer)));
    }
  }
}

TEST_CASE("a body asks for every wall that an engine can make") {
  const Policy policy = sample::policy();
  BodyPlaces where = places();
  where.plain.reset();
  const json docker = create_body(ApiKind::docker, policy, where)["HostConfig"];
  CHECK(docker["NetworkMode"] == "none");
  CHECK(docker["MemorySwap"] == docker["Memory"]);
  CHECK(docker["ReadonlyRootfs"] == true);
  CHECK(docker["CapDrop"] == json({"ALL"}));
  CHECK(docker["SecurityOpt"] == json({"no-new-privileges"}));
  CHECK_FALSE(docker.contains("Binds"));
  const json podman = create_body(ApiKind::podman, policy, where);
  CHECK(podman["netns"]["nsmode"] == "none");
  CHECK(podman["resource_limits"]["memory"]["swap"] == podman["resource_limits"]["memory"]["limit"]);
  CHECK(podman["read_only_filesystem"] == true);
  CHECK(podman["no_new_privileges"] == true);
  CHECK(podman["image_volume_mode"] == "ignore");
}
