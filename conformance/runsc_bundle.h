// A bundle of benchsand's as gVisor's runsc can take it. Pure.
#pragma once

#include <string>

#include "oci/result.h"

namespace benchsand::conformance {

// Without the filter, for its calls come to a kernel of its own, and without the limit of processes, for it counts runsc's threads.
Result<std::string> runsc_config(const std::string& config, const std::string& cgroups_path);

}  // namespace benchsand::conformance
