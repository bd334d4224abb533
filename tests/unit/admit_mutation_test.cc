// Every place of a real document, with every kind of value in it: whatever comes back, no wall is another than the policy's.
#include <doctest/doctest.h>

#include <set>

#include "fixtures.h"
#include "oci/admit.h"
#include "oci/admit_exec.h"
#include "oci/tighten.h"
#include "sample.h"

using namespace benchsand;
using nlohmann::json;

namespace {

const json kValues[] = {nullptr,
                        "",
                        "x",
                        "/",
                        "/etc",
                        0,
                        -1,
                        1,
                        UINT64_MAX,
                        0.5,
                        true,
                        false,
                        json::array(),
                        json::object(),
                        json::array({json::object()}),
                        json::array({"x"}),
                        {{"x", "y"}}};

// What the engine may say; unknown fields ("x") are handed on.
bool is_engines_own(const std::string& pointer) {
  for (const char* own : {"/annotations", "/process/apparmorProfile", "/process/selinuxLabel", "/process/consoleSize",
                          "/linux/mountLabel", "/linux/x", "/process/x"})
    if (pointer.starts_with(own)) return true;
  return false;
}

// All differences between the two, but for what the engine may say.
std::string differences(const json& edited, const json& ours) {
  std::string found;
  for (const json& difference : json::diff(ours, edited))
    if (!is_engines_own(difference["path"].get<std::string>())) found += difference.dump() + "\n";
  return found;
}

struct Outcomes {
  int errors = 0, refused = 0, made = 0;
};

void try_document(const json& document, const AdmitContext& context, Outcomes& outcomes) {
  auto admission = admit(document.dump(), context);
  if (!admission) {
    ++outcomes.errors;
    CHECK(admission.error().kind == Error::Kind::usage);
    return;
  }
  const HostFacts host = sample::host(CgroupLayout::v2);
  const auto policy = decide_admitted(*admission, context, "", host);
  if (!policy) {
    ++outcomes.refused;
    REQUIRE_FALSE(admission->refusals.empty());
    return;
  }
  ++outcomes.made;
  const BundlePlaces places = {"/rootfs", "/output", "/benchsand/r1/ct", "/listener"};
  const json edited = json::parse(edited_config(*admission, *policy, host, places));
  CHECK(differences(edited, bundle_json(*policy, host, places)) == "");
  CHECK(policy->uid == context.profile.uid);
  for (const auto& field : kLimitFields)
    CHECK(policy->limits.*field.member <= context.profile.limits.at(std::string(field.name)).maximum);
  for (const auto& input : policy->inputs) CHECK_FALSE(source_refused(input.source, input.target, context.container));
}

template <class Try>
void mutate(const json& document, const Try& attempt) {
  std::set<std::string> places;  // of the leaves, and of all above them
  const json leaves = document.flatten();
  for (const auto& [pointer, unused] : leaves.items())
    for (json::json_pointer place(pointer); !place.empty(); place.pop_back()) places.insert(place.to_string());
  for (const auto& place : places) {
    CAPTURE(place);
    for (const json& value : kValues) {
      CAPTURE(value.dump());
      json changed = document;
      changed[json::json_pointer(place)] = value;
      attempt(changed);
    }
  }
}

}  // namespace

TEST_CASE("no value anywhere in a config.json moves a wall") {
  const auto profile = parse_profile(fixture("../../profiles/strict.yaml"), "strict.yaml");
  REQUIRE(profile);
  json document = json::parse(fixture("oci/docker-privileged.json"));
  document["annotations"] = {{"benchsand.limits.memory", "128MiB"}};
  document["hooks"] = {{"prestart", {{{"path", "/x"}, {"args", {"libnetwork-setkey"}}}}}};
  document["process"]["rlimits"] = {{{"type", "RLIMIT_NOFILE"}, {"soft", 128}, {"hard", 128}}};
  document["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"}};
  document["linux"]["resources"]["pids"]["limit"] = 20;
  for (const char* set : {"bounding", "effective", "permitted"})
    document["process"]["capabilities"][set] = {"CAP_SYS_ADMIN"};
  const AdmitContext context{"/run/containerd/x", "", *profile};
  Outcomes outcomes;
  mutate(document, [&](const json& changed) { try_document(changed, context, outcomes); });
  CHECK(outcomes.errors > 100);
  CHECK(outcomes.refused > 20);
  CHECK(outcomes.made > 100);
}

TEST_CASE("no value anywhere in an exec's process or an update moves a wall") {
  Policy policy = sample::policy();
  take_terminal(policy);
  const json walls = {{"user", {{"uid", 65534}, {"gid", 65534}}}, {"noNewPrivileges", true}, {"oomScoreAdj", 1000}};
  int made = 0;
  json process = json::parse(fixture("oci/docker-exec-terminal.process.json"));
  for (const char* set : {"bounding", "effective", "permitted"}) process["capabilities"][set] = {"CAP_SYS_ADMIN"};
  mutate(process, [&](const json& changed) {
    const auto admission = admit_exec(changed.dump(), policy, false);
    if (!admission || !admission->refusals.empty()) return;
    ++made;
    for (const auto& [name, value] : walls.items()) CHECK(admission->process[name] == value);
    for (const auto& [set, list] : admission->process["capabilities"].items()) CHECK(list.empty());
    CHECK(admission->process["capabilities"].size() == 5);
  });
  mutate(json::parse(fixture("oci/docker-update-cpu.resources.json")), [&](const json& changed) {
    const auto result = tighten(changed.dump(), policy, 32 << 20, sample::host(CgroupLayout::v2), {});
    if (!result) return;
    ++made;
    for (const auto& field : kLimitFields) CHECK(result->limits.*field.member <= policy.limits.*field.member);
    CHECK(result->resources["memory"]["limit"] == result->resources["memory"]["swap"]);
  });
  CHECK(made > 100);
}
