// Typed reading on top of the YAML tree: every problem of a file is collected with its place, nothing is skipped silently.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oci/limits.h"
#include "oci/result.h"
#include "oci/units.h"
#include "oci/yaml_tree.h"

namespace benchsand {

class Problems {
 public:
  explicit Problems(const YamlSource& source) : source_(source) {}

  void add(Position position, std::string problem) { found_.emplace_back(position, std::move(problem)); }
  bool none() const { return found_.empty(); }
  // All of them, in the order of the file. Kind usage.
  std::unexpected<Error> report() const;
  const YamlSource& source() const { return source_; }

 private:
  const YamlSource& source_;
  std::vector<std::pair<Position, std::string>> found_;
};

// The keys of one mapping. A key that is not in `known` is a problem at once, and so is a node that is no mapping.
// `path` is what messages call the mapping ("limits"); empty for the top of the file.
class MappingReader {
 public:
  MappingReader(const YamlNode& node, std::string path, std::vector<std::string> known, Problems& problems);

  const YamlNode* find(std::string_view key) const;     // nullptr: the key is not there
  const YamlNode* require(std::string_view key) const;  // nullptr: a problem was added
  std::string path_of(std::string_view key) const;

 private:
  const YamlNode& node_;
  std::string path_;
  Problems& problems_;
};

// Each reads one node; on nullopt a problem was added. `path` names it in messages.
std::optional<std::string> read_text(const YamlNode& node, const std::string& path, Problems& problems);
std::optional<std::string> read_nonempty_text(const YamlNode& node, const std::string& path, Problems& problems);
std::optional<std::vector<std::string>> read_texts(const YamlNode& node, const std::string& path, Problems& problems);
std::optional<Quantity> read_quantity(const YamlNode& node, const std::string& path, Unit unit, Problems& problems);
// Decimal without leading zeros, or 0x and hexadecimal digits.
std::optional<std::uint64_t> read_integer(const YamlNode& node, const std::string& path, Problems& problems);
// 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit: safe as a file name and in a message.
std::optional<std::string> read_name(const YamlNode& node, const std::string& path, Problems& problems);
bool check_sequence(const YamlNode& node, const std::string& path, Problems& problems);

// The first key must be `key: 1`. On false a problem was added, and the rest is not worth reading.
bool read_format_version(const YamlNode& root, const std::string& key, Problems& problems);

// `; did you mean "memory"?`, or "" when no known word is close.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

// LimitField::name of every limit.
std::vector<std::string> limit_names();

}  // namespace benchsand
