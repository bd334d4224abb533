// One run on an engine that does not know benchsand's runtime, or is not to use it.
#pragma once

#include "oci/policy.h"
#include "shim/engine_client.h"
#include "shim/engine_commands.h"

namespace benchsand {

// For who is not to have benchsand's: empty where the engine's default is another, else one of its others.
Result<std::string> runtime_beside_ours(EngineClient& engine);
// That of a Podman service of our own, which has to be told: as Podman itself chooses.
Result<std::string> runtime_of_the_host();

// By its name: "runc".
Result<std::string> runtime_without_shim(ApiKind kind);
Result<std::string> runtime_without_shim(EngineClient& engine);

// Asked for, or the engine does not know the runtime. A Podman that is not pointed at a service gets one of ours, and knows it.
Result<bool> is_without_shim(const EngineRunRequest& request);

// The policy as it was decided.
Result<EngineRunReport> run_without_shim(const EngineRunRequest& request, const HostFacts& host, Policy policy);

}  // namespace benchsand
