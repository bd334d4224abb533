// The statements of a TOML text with their lines, so that a text can be added to without being written anew.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "oci/result.h"

namespace benchsand {

struct TomlEntry {
  enum class Kind { table, array_of_tables, inline_table, value };
  Kind kind = Kind::value;
  std::vector<std::string> path;  // tables and key
  std::size_t line = 0;
  std::string text;                  // of a value that is neither string nor array: as written
  std::vector<std::string> strings;  // of a string, or of an array's strings
};

// All tables and keys in their order, those of inline tables too. What is no TOML, or says the same key twice, is an error.
Result<std::vector<TomlEntry>> read_toml(const std::string& text, const std::string& file);

}  // namespace benchsand
