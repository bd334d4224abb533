// What needs the API of an engine. Two programs are made of one source: `benchsand` is static and has none of this, and executes
// `benchsand-engines`, which is linked with libcurl (docs/architecture.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "oci/engine_endpoint.h"
#include "shim/default_containers.h"
#include "shim/image_commands.h"
#include "shim/load.h"
#include "shim/run.h"

namespace benchsand {

struct EngineRunRequest {
  TaskRequest task;
  ApiKind engine = ApiKind::docker;
  std::string results;  // DIR of --out
  bool without_shim = false;
};

struct EngineRunReport {
  nlohmann::json record;
  std::string results;  // DIR/ID
};

struct EngineCommands {
  // An error is one that left nothing to record.
  Result<EngineRunReport> (*run)(const EngineRunRequest& request);
  // What benchsands that have ended left in the engines' stores; a line for each thing.
  std::vector<std::string> (*collect)();
  // Of the store of request.engine.
  Result<std::string> (*images)(const ImageRequest& request);
  // The digest of the config of an image that Docker or Podman has, once it is unpacked.
  Result<std::string> (*unpack_image)(const ImageRef& image);
  // Of the suite alone: which runtime makes the containers of a run without benchsand's; and containers as the engine makes them by itself, of a directory with the probe.
  Result<std::string> (*runtime_without_shim)(ApiKind engine);
  Result<std::unique_ptr<DefaultEngine>> (*default_engine)(ApiKind engine, const std::string& rootfs);
};

// Null in the program that has no libcurl.
const EngineCommands* engine_commands();

// Whether there seems to be an engine whose store `gc` has to look into: without one the second program is not needed.
bool an_engine_is_here();

// Executes benchsand-engines with the same arguments. Comes back only with the reason why not.
Error become_engines(char** arguments);

}  // namespace benchsand
