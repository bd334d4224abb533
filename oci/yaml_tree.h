// A YAML file as a tree of mappings, sequences and scalars, each with its place in the file.
//
// yaml-cpp only delivers events. The subset is small on purpose, because every convenience left out here is one that makes
// a file mean something else than it seems to: no duplicate keys (yaml-cpp takes the first, others the last), no anchors,
// aliases, merge keys or tags, one document, no types guessed from the text (`no` and `010` stay text).
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "oci/result.h"

namespace benchsand {

struct Position {  // counted from 1; columns are characters, not bytes
  std::size_t line = 1;
  std::size_t column = 1;
  auto operator<=>(const Position&) const = default;
};

struct YamlNode {
  enum class Kind { empty, plain, quoted, sequence, mapping };  // empty: nothing, `~` or `null`
  Kind kind = Kind::empty;
  Position position;
  std::string text;  // of a plain or quoted scalar
  std::string key;   // of a child of a mapping
  Position key_position;
  std::vector<YamlNode> children;  // in the order of the file

  bool is_text() const { return kind == Kind::plain || kind == Kind::quoted; }
};

// A file's text and the name that messages give it.
class YamlSource {
 public:
  YamlSource(std::string name, std::string text);

  const std::string& text() const { return text_; }
  // "NAME:LINE:COLUMN"
  std::string where(Position position) const;
  // "NAME:LINE:COLUMN: error: TEXT", the source line, and a caret below the place.
  std::string diagnostic(Position position, const std::string& problem) const;
  // Counted from 0, columns in bytes, as yaml-cpp counts; a place outside the file becomes the nearest one in it.
  Position position_at(int line, int byte_column) const;
  // The byte there, or NUL past the end of the line.
  char byte_at(int line, int byte_column) const;

 private:
  std::string_view line(std::size_t index) const;

  std::string name_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
};

// Kind usage; the message is a diagnostic.
Result<YamlNode> parse_yaml(const YamlSource& source);

// "text" in double quotes, with control characters, quotes and backslashes escaped: safe on a terminal.
std::string in_quotes(std::string_view text);

}  // namespace benchsand
