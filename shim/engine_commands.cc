// Of the program with libcurl.
#include "shim/engine_commands.h"

#include "shim/engine_defaults.h"
#include "shim/engine_gc.h"
#include "shim/engine_images.h"
#include "shim/engine_plain.h"
#include "shim/engine_run.h"

namespace benchsand {

const EngineCommands* engine_commands() {
  static constexpr EngineCommands commands{run_on_engine,       collect_engine_garbage, serve_engine_images,
                                           unpack_stored_image, runtime_without_shim,   default_engine};
  return &commands;
}

}  // namespace benchsand
