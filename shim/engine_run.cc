#include "shim/engine_run.h"

namespace benchsand {

Result<RunReport> run_on_engine(const EngineRunRequest& request) {
  return fault(std::string("run on ") + (request.engine == ApiKind::docker ? "docker" : "podman") +
               ": not part of this program yet");
}

}  // namespace benchsand
