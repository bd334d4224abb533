#include "oci/without_runtime.h"

#include <doctest/doctest.h>

#include "oci/record.h"
#include "oci/report.h"
#include "sample.h"

using namespace benchsand;

namespace {

Policy plain_policy() {
  Policy policy = sample::policy();
  policy.without_runtime = unobservable_walls();
  policy.user_namespace = UserNamespace::host;
  return policy;
}

std::string observed(const Policy& policy, WithoutRuntime why) {
  const auto failure = refused_beforehand(policy, why, "docker at unix:///run/docker.sock");
  return failure ? failure->observed : "";
}

constexpr const char* kAsInDocs =
    "; or a profile of your own that goes without the runtime, as in "
    "docs/without-runtime.md)";

}  // namespace

TEST_CASE("a profile that goes without the runtime in all that it cannot give is not refused beforehand") {
  CHECK_FALSE(refused_beforehand(plain_policy(), WithoutRuntime::asked_for, "docker"));
}

TEST_CASE("a run that cannot have a score without the runtime is refused beforehand, with its cure") {
  const std::string refuse =
      ": without it network, rootfs, privileges, syscalls, evidence cannot be observed whole, and the profile strict "
      "says without_runtime: refuse (cure: ";
  Policy policy = plain_policy();
  policy.without_runtime.clear();
  CHECK(observed(policy, WithoutRuntime::asked_for) ==
        "--without-shim" + refuse + "leave out --without-shim" + kAsInDocs);
  CHECK(observed(policy, why_without(ApiKind::docker, false)) ==
        "not known there" + refuse + "benchsand install docker, and systemctl reload docker" + kAsInDocs);
  CHECK(observed(policy, why_without(ApiKind::podman, false)) ==
        "another runtime of this service" + refuse +
            "unset CONTAINER_HOST, and benchsand starts a service of its own; or start that one with podman --runtime "
            "benchsand system service, after benchsand install podman" +
            kAsInDocs);
  for (const auto& wall : unobservable_walls()) {
    policy.without_runtime = unobservable_walls();
    policy.without_runtime.erase(std::find(policy.without_runtime.begin(), policy.without_runtime.end(), wall));
    CHECK(observed(policy, WithoutRuntime::asked_for) ==
          "--without-shim: without it " + wall +
              " cannot be observed whole, and the profile strict does not give them away with its without_runtime "
              "(cure: leave out --without-shim" +
              kAsInDocs);
  }
  policy = plain_policy();
  policy.user_namespace = UserNamespace::own;
  CHECK(observed(policy, WithoutRuntime::asked_for) ==
        std::string("--without-shim: without it an engine gives a run no ids of its own, and the profile strict says "
                    "user_namespace: own (cure: leave out --without-shim") +
            kAsInDocs);
}

TEST_CASE("the table of a run that did not come to its door leads with why, and has one line for the rest") {
  Policy policy = plain_policy();
  policy.without_runtime.clear();
  Verdict verdict;
  verdict.outcome = Outcome::refused;
  verdict.failures = {{"evidence", "benchsand's runtime", "not known there", "docker"}};
  const auto record = make_record(policy, sample::host(CgroupLayout::v2), RunFacts(), {}, Evidence(), End(), verdict);
  CHECK(verdict_table(record, false) ==
        "evidence    BROKEN  docker: expected benchsand's runtime, observed not known there\n"
        "the others  -       not observed: the run did not come to its door\n"
        "verdict     NOT SCORED refused: not-started\n");
}
