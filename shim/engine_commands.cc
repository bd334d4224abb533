// Of the program with libcurl.
#include "shim/engine_commands.h"

#include "shim/engine_gc.h"
#include "shim/engine_run.h"

namespace benchsand {

const EngineCommands* engine_commands() {
  static constexpr EngineCommands commands{run_on_engine, collect_engine_garbage};
  return &commands;
}

}  // namespace benchsand
