// What the supervisor measured, put beside what the cgroup counted.
#pragma once

#include "oci/evidence.h"
#include "oci/host_changes.h"
#include "oci/policy.h"
#include "oci/verdict.h"
#include "shim/supervisor.h"

namespace benchsand {

// wall-time, cpu-time, stdio and the processes left behind.
void spend(Evidence& evidence, const Watched& watched, const Policy& policy, std::uint64_t stdout_bytes,
           std::uint64_t stderr_bytes);

RunShare run_share(const Evidence& evidence, const Limits& limits);

EndFacts end_facts(const Evidence& evidence, const Watched& watched, int wait_status);

}  // namespace benchsand
