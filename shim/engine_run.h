// One run whose container an engine makes over its API.
#pragma once

#include "shim/engine_commands.h"

namespace benchsand {

Result<RunReport> run_on_engine(const EngineRunRequest& request);

}  // namespace benchsand
