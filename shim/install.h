// `benchsand install`: makes the runtime known to an engine, and takes it out again.
#pragma once

#include <string>

#include "oci/install.h"

namespace benchsand {

struct InstallRequest {
  EngineKind engine = EngineKind::docker;
  std::string config;   // the engine's file; empty: where its package has it
  std::string runtime;  // benchsand-runtime; empty: beside this program
  bool uninstall = false;
  bool dry_run = false;
};

// Done, or nothing changed. What was done, or would be, and what the user has to do then.
Result<std::string> install_runtime(const InstallRequest& request);

}  // namespace benchsand
