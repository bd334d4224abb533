// `benchsand bundle`: an OCI bundle for trying a task out by hand.
#pragma once

#include <string>

#include "shim/load.h"

namespace benchsand {

// A bundle that `crun run` or `runc run` takes as it is: no listener, the output a plain directory beside it. What there is to say.
Result<std::string> write_task_bundle(const TaskRequest& task, const HostFacts& host, const std::string& directory);

}  // namespace benchsand
