// Every verb and flag of the runtime's command line, in one table each: parsing, rebuilding, help and shell completion walk them.
#pragma once

#include <span>
#include <variant>

#include "oci/runtime_args.h"

namespace benchsand {

struct VerbRow {
  RuntimeVerb verb;
  const char* name;
  bool takes_id;
  const char* rest;  // what may follow the id; null: nothing
  const char* help;
};
std::span<const VerbRow> runtime_verbs();

using VerbSet = std::uint32_t;
inline constexpr VerbSet kBeforeVerb = 1u << 31;
constexpr VerbSet only(RuntimeVerb verb) {
  return 1u << static_cast<unsigned>(verb);
}

using TextField = std::string RuntimeCall::*;
using BoolField = bool RuntimeCall::*;
using ListField = std::vector<std::string> RuntimeCall::*;  // may be given again and again
using MapField = std::map<std::string, std::string> RuntimeCall::*;
struct SwitchField {  // a flag without value that is kept in a map
  MapField map;
};

struct FlagRow {
  const char* name;    // without dashes
  const char* letter;  // short form; null: none
  VerbSet verbs;
  std::variant<TextField, BoolField, ListField, MapField, SwitchField> field;
  const char* value;     // what help calls the value; null: the flag takes none
  const char* delegate;  // the only delegate that has it, and the other does the same without; null: both
  const char* help;
};
std::span<const FlagRow> runtime_flags();
bool takes_value(const FlagRow& row);

// Of the whole program, or of one verb.
std::string runtime_help();
std::string runtime_help(RuntimeVerb verb);

}  // namespace benchsand
