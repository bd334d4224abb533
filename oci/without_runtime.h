// A run in an engine's container that the engine's own runtime made: nobody of ours stands between the engine and the kernel.
// What the host can still observe is observed as in any other run. The rest is named here, and whether a run may go without it
// is for the profile to say (`without_runtime`).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/engine_endpoint.h"
#include "oci/policy.h"
#include "oci/verdict.h"
#include "oci/walls.h"

namespace benchsand {

// Why such an observation is missing; no other reason is ever forgiven, and no value that differs.
inline constexpr const char* kNotWithoutRuntime = "not observable without benchsand's runtime";
// What stands beside it in the record where the profile forgives it.
inline constexpr const char* kForgiven = "the profile's without_runtime";

// The observations, by key, and the walls that they belong to.
const std::vector<std::string>& unobservable_keys();
const std::vector<std::string>& unobservable_walls();

// Where the gate stands in the container: the program of ours at which the candidate waits until the host has looked.
inline constexpr const char* kGatePlace = "/.benchsand";

// Makes it the policy of such a run. Every loosening that comes with it is named.
void take_plain(Policy& policy);

// Who says that the runtime is not used.
enum class WithoutRuntime { asked_for, unknown_to_docker, unknown_to_podman_service };
WithoutRuntime why_without(ApiKind kind, bool asked_for);

// What makes a score impossible under this profile whatever the engine does, and what to do about it. Nothing where a run may
// come to one.
std::optional<Failure> refused_beforehand(const Policy& policy, WithoutRuntime why, const std::string& engine);

bool is_forgiven(const Rule& rule, const Observation* observation);
// Of a run that is not plain: nothing.
void forgive_unobserved(const Policy& policy, std::vector<Rule>& rules);

}  // namespace benchsand
