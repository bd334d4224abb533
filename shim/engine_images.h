// Images in the stores of engines: taken out of them for direct runs, and put into them for runs on them.
#pragma once

#include <string>
#include <vector>

#include "oci/policy.h"
#include "oci/stored_image.h"
#include "shim/engine_client.h"
#include "shim/image_commands.h"

namespace benchsand {

inline constexpr const char* kRootfsLabel = "benchsand.rootfs";

// Asks Docker, then Podman, and unpacks what they have into the cache, unless it is there. The digest of the config.
Result<std::string> unpack_stored_image(const ImageRef& image);

// The same of one engine.
Result<std::string> unpack_image_of(EngineClient& engine, const ImageRef& image);

// What the container's root file system is, in the engine's store: the task's image if it is there, or a copy of its rootfs, imported
// once. The id. Notes in the policy what open_task_rootfs would.
Result<std::string> image_in_engine(EngineClient& engine, Policy& policy);

// ls and prune, of what image_in_engine has imported.
Result<std::string> serve_engine_images(const ImageRequest& request);

}  // namespace benchsand
