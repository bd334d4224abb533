#include "shim/command_tree.h"

#include <CLI/CLI.hpp>

#include "shim/load.h"

namespace benchsand {

namespace {

// A choice is told by its validator only, as part of a type: `TEXT:{crun,runc}`.
std::vector<std::string> choices(const CLI::Option& option) {
  std::vector<std::string> values;
  const std::string type = option.get_type_name();
  const auto begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return values;
  for (auto at = begin + 1; at < end;) {
    const auto comma = std::min(type.find(',', at), end);
    values.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return values;
}

}  // namespace

CommandTree command_tree(const CLI::App& app) {
  CommandTree tree;
  tree.name = app.get_name();
  tree.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    CommandOption one;
    const bool positional = option->get_lnames().empty();
    one.name = positional ? option->get_name(true) : "--" + option->get_lnames().front();
    one.help = option->get_description();
    one.takes_value = option->get_items_expected_max() > 0;
    one.values = choices(*option);
    one.files = one.takes_value && one.values.empty();
    if (one.name == "--profile") one.values = builtin_profile_names();  // and a path
    (positional ? tree.positionals : tree.options).push_back(std::move(one));
  }
  for (const CLI::App* command : app.get_subcommands(nullptr)) tree.commands.push_back(command_tree(*command));
  return tree;
}

}  // namespace benchsand
