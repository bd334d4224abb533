#include "oci/completion.h"

#include <algorithm>

namespace benchsand {

namespace {

std::string words(const std::vector<std::string>& list) {
  std::string text;
  for (const auto& word : list) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string option_words(const CommandTree& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options) names.push_back(option.name);
  return words(names);
}

// The words that a command's own arguments may be.
std::string positional_words(const CommandTree& command) {
  std::vector<std::string> names;
  for (const auto& one : command.positionals) names.insert(names.end(), one.values.begin(), one.values.end());
  for (const auto& one : command.commands) names.push_back(one.name);
  return words(names);
}

// For shells: inside single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string bash_value_cases(const std::string& command, const CommandTree& tree) {
  std::string text;
  for (const auto& option : tree.options)
    if (option.takes_value)
      text += "    " + command + ":" + option.name + ") words=" + quoted(words(option.values)) + " ;;\n";
  return text;
}

// An empty COMPREPLY leaves it to bash, which completes files (-o default).
std::string bash(const CommandTree& program) {
  std::string names, values = bash_value_cases("", program), rest;
  const auto rest_case = [&](const std::string& name, const CommandTree& command) {
    rest += "    " + name + ":-*) words=" + quoted(option_words(command)) + " ;;\n";
    rest += "    " + name + ":*) words=" + quoted(positional_words(command)) + " ;;\n";
  };
  rest_case("", program);
  for (const auto& command : program.commands) {
    names += (names.empty() ? "" : "|") + command.name;
    values += bash_value_cases(command.name, command);
    rest_case(command.name, command);
  }
  const std::string function = "_" + program.name;
  return "# bash completion for " + program.name + ", made by `" + program.name + " completion bash`\n" + function +
         "() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word words=\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in\n"
         "      " +
         names +
         ") command=$word; break ;;\n"
         "    esac\n"
         "  done\n"
         "  case $command:$prev in\n" +
         values + "    *) case $command:$cur in\n" + rest +
         "    esac ;;\n"
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "}\n"
         "complete -o default -F " +
         function + " " + program.name + "\n";
}

// Inside the brackets of _arguments and before the colon of _describe.
std::string zsh_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const CommandOption& option) {
  const std::string list = "(" + words(option.values) + ")";
  if (option.values.empty()) return option.files ? "_files" : " ";
  return option.files ? "_alternative 'words:word:" + list + "' 'files:file:_files'" : list;
}

std::string zsh_arguments(const CommandTree& command) {
  std::string text;
  for (const auto& option : command.options)
    text += " \\\n        " +
            quoted(option.name + "[" + zsh_escaped(option.help) + "]" +
                   (option.takes_value ? ":" + zsh_escaped(option.name.substr(2)) + ":" + zsh_action(option) : ""));
  for (const auto& one : command.positionals)
    text += " \\\n        " + quoted(":" + zsh_escaped(one.name) + ":" + zsh_action(one));
  return text;
}

std::string zsh(const CommandTree& program) {
  std::string commands, cases;
  for (const auto& command : program.commands) {
    commands += "    " + quoted(zsh_escaped(command.name) + ":" + command.help) + "\n";
    cases += "      " + command.name + ") _arguments" + zsh_arguments(command) + " ;;\n";
  }
  CommandTree top = program;
  top.positionals.clear();
  const std::string function = "_" + program.name;
  return "#compdef " + program.name + "\n# zsh completion, made by `" + program.name + " completion zsh`\n" + function +
         "() {\n"
         "  local -a commands\n"
         "  local state line\n"
         "  commands=(\n" +
         commands +
         "  )\n"
         "  _arguments -C" +
         zsh_arguments(top) +
         " \\\n        '1: :->command' '*:: :->rest'\n"
         "  case $state in\n"
         "    command) _describe command commands ;;\n"
         "    rest) case $words[1] in\n" +
         cases +
         "    esac ;;\n"
         "  esac\n"
         "}\n" +
         function + " \"$@\"\n";
}

std::string fish_option(const std::string& start, const CommandOption& option) {
  std::string text = start + " -l " + option.name.substr(2);
  if (option.takes_value) text += option.files || option.values.empty() ? " -r" : " -x";
  if (!option.values.empty()) text += " -a " + quoted(words(option.values));
  return text + " -d " + quoted(option.help) + "\n";
}

std::string fish(const CommandTree& program) {
  const std::string start = "complete -c " + program.name + " -n ", none = start + "__fish_use_subcommand -f";
  std::string text = "# fish completion for " + program.name + ", made by `" + program.name + " completion fish`\n";
  for (const auto& option : program.options) text += fish_option(none, option);
  for (const auto& command : program.commands) {
    text += none + " -a " + command.name + " -d " + quoted(command.help) + "\n";
    const std::string inside = start + quoted("__fish_seen_subcommand_from " + command.name);
    for (const auto& option : command.options) text += fish_option(inside, option);
    const bool files = std::any_of(command.positionals.begin(), command.positionals.end(),
                                   [](const CommandOption& one) { return one.files; });
    if (!files) text += inside + " -f\n";
    if (const auto values = positional_words(command); !values.empty())
      text += inside + (files ? "" : " -f") + " -a " + quoted(values) + "\n";
  }
  return text;
}

// A command of commands is completed as one: their names where its arguments are, and the options of all of them.
CommandTree flattened(CommandTree command) {
  if (command.commands.empty()) return command;
  CommandOption names{"COMMAND", "", true, {}, false};
  for (const auto& inner : command.commands) {
    names.values.push_back(inner.name);
    for (const auto& option : inner.options) {
      const auto same = [&](const CommandOption& other) { return other.name == option.name; };
      if (std::none_of(command.options.begin(), command.options.end(), same)) command.options.push_back(option);
    }
  }
  command.positionals.insert(command.positionals.begin(), std::move(names));
  command.commands.clear();
  return command;
}

}  // namespace

Result<std::string> completion(const CommandTree& whole, const std::string& shell) {
  CommandTree program = whole;
  for (auto& command : program.commands) command = flattened(std::move(command));
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  return usage("make a completion for " + shell + ": the shells are bash, zsh and fish");
}

}  // namespace benchsand
