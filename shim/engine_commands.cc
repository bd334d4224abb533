// Of the program with libcurl.
#include "shim/engine_commands.h"

#include "shim/engine_run.h"

namespace benchsand {

const EngineCommands* engine_commands() {
  static constexpr EngineCommands commands{run_on_engine};
  return &commands;
}

}  // namespace benchsand
