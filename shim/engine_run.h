// One run whose container an engine makes over its API, with benchsand's own runtime: the engine creates and starts the container,
// the monitor that the runtime leaves behind makes the walls, observes them and judges (shim/front_monitor.cc), and what the
// engine says is compared with what the monitor saw.
#pragma once

#include "shim/engine_commands.h"

namespace benchsand {

Result<EngineRunReport> run_on_engine(const EngineRunRequest& request);

}  // namespace benchsand
