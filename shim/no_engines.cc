// Of the program without libcurl.
#include "shim/engine_commands.h"

namespace benchsand {

const EngineCommands* engine_commands() {
  return nullptr;
}

}  // namespace benchsand
