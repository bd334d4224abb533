// The commands and options of a CLI11 program, for what is made from them.
#pragma once

#include "oci/completion.h"

namespace CLI {
class App;
}

namespace benchsand {

CommandTree command_tree(const CLI::App& app);

}  // namespace benchsand
