// The image of a container whose root file system is the task's own: an engine wants one, and the monitor mounts the task's.
#pragma once

#include <string>

#include "shim/engine_client.h"

namespace benchsand {

// Its id; imported once, with nothing in it.
Result<std::string> empty_image(EngineClient& engine);

}  // namespace benchsand
