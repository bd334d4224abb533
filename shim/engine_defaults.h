// Docker or Podman, asked for containers of its own (default_containers.h).
#pragma once

#include <memory>

#include "oci/engine_endpoint.h"
#include "shim/default_containers.h"

namespace benchsand {

// With an image of the directory `rootfs`, which is taken out of the engine's store again.
Result<std::unique_ptr<DefaultEngine>> default_engine(ApiKind engine, const std::string& rootfs);

}  // namespace benchsand
