// What a shell needs to complete a command line, from the commands and options as the program itself parses them.
#pragma once

#include <string>
#include <vector>

#include "oci/result.h"

namespace benchsand {

struct CommandOption {
  std::string name;  // `--engine`; of a positional, its name in the help
  std::string help;
  bool takes_value = false;
  std::vector<std::string> values;  // what it may be, or some of it
  bool files = false;               // any file too
};

struct CommandTree {
  std::string name, help;
  std::vector<CommandOption> options, positionals;
  std::vector<CommandTree> commands;
};

// The script for `bash`, `zsh` or `fish`.
Result<std::string> completion(const CommandTree& program, const std::string& shell);

}  // namespace benchsand
