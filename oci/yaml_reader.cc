#include "oci/yaml_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace benchsand {
namespace {

constexpr std::size_t kMostShown = 20;  // problems in one message

const char* to_text(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::empty:
      return "nothing is given";
    case YamlNode::Kind::plain:
    case YamlNode::Kind::quoted:
      return "text";
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::mapping:
      return "a mapping";
  }
  std::abort();  // not a value of the enumeration
}

std::string prefix(const std::string& path) {
  return path.empty() ? "" : path + ": ";
}

std::string wrong_kind(const YamlNode& node, const std::string& path, const std::string& due) {
  return prefix(path) + due + " is due here, " + (node.kind == YamlNode::Kind::empty ? "and " : "not ") +
         to_text(node.kind);
}

bool is_name(std::string_view text) {
  const auto alphanumeric = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  const auto fits = [&](char c) { return alphanumeric(c) || c == '.' || c == '_' || c == '-'; };
  return !text.empty() && text.size() <= 64 && alphanumeric(text[0]) && std::all_of(text.begin(), text.end(), fits);
}

// Edits that turn one word into the other: insert, drop or replace a character, or swap two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::unexpected<Error> Problems::report() const {
  auto sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string message;
  const std::size_t shown = std::min(sorted.size(), kMostShown);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) message += '\n';
    message += source_.diagnostic(sorted[i].first, sorted[i].second);
  }
  if (shown < sorted.size()) message += "\nand " + std::to_string(sorted.size() - shown) + " more";
  return usage(message);
}

MappingReader::MappingReader(const YamlNode& node, std::string path, std::vector<std::string> known, Problems& problems)
    : node_(node), path_(std::move(path)), problems_(problems) {
  if (node.kind != YamlNode::Kind::mapping) {
    problems.add(node.position, wrong_kind(node, path_, "a mapping"));
    return;
  }
  for (const YamlNode& child : node.children) {
    if (std::find(known.begin(), known.end(), child.key) != known.end()) continue;
    problems.add(child.key_position,
                 prefix(path_) + "unknown key " + in_quotes(child.key) + did_you_mean(child.key, known));
  }
}

const YamlNode* MappingReader::find(std::string_view key) const {
  if (node_.kind != YamlNode::Kind::mapping) return nullptr;
  const auto found = std::find_if(node_.children.begin(), node_.children.end(),
                                  [&](const YamlNode& child) { return child.key == key; });
  return found == node_.children.end() ? nullptr : &*found;
}

const YamlNode* MappingReader::require(std::string_view key) const {
  const YamlNode* found = find(key);
  // A node of the wrong kind was reported by the constructor.
  if (found == nullptr && node_.kind == YamlNode::Kind::mapping) {
    problems_.add(node_.position, prefix(path_) + "key " + in_quotes(key) + " is missing");
  }
  return found;
}

std::string MappingReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

std::optional<std::string> read_text(const YamlNode& node, const std::string& path, Problems& problems) {
  if (node.kind == YamlNode::Kind::empty) {
    problems.add(node.position, path + ": the value is missing; put quotes around ~ or null if that text is meant");
    return std::nullopt;
  }
  if (!node.is_text()) {
    problems.add(node.position, wrong_kind(node, path, "text"));
    return std::nullopt;
  }
  if (node.text.find('\0') != std::string::npos) {
    problems.add(node.position, path + ": text cannot hold a NUL byte");
    return std::nullopt;
  }
  return node.text;
}

std::optional<std::string> read_nonempty_text(const YamlNode& node, const std::string& path, Problems& problems) {
  const auto text = read_text(node, path, problems);
  if (text && text->empty()) {
    problems.add(node.position, path + ": the text is empty");
    return std::nullopt;
  }
  return text;
}

bool check_sequence(const YamlNode& node, const std::string& path, Problems& problems) {
  if (node.kind == YamlNode::Kind::sequence) return true;
  problems.add(node.position, wrong_kind(node, path, "a list"));
  return false;
}

std::optional<std::vector<std::string>> read_texts(const YamlNode& node, const std::string& path, Problems& problems) {
  if (!check_sequence(node, path, problems)) return std::nullopt;
  std::vector<std::string> texts;
  for (const YamlNode& child : node.children) {
    const auto text = read_text(child, path + "[" + std::to_string(texts.size()) + "]", problems);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

std::optional<Quantity> read_quantity(const YamlNode& node, const std::string& path, Unit unit, Problems& problems) {
  const auto text = read_text(node, path, problems);
  if (!text) return std::nullopt;
  const auto quantity = parse_quantity(*text, unit);
  if (!quantity) {
    problems.add(node.position, path + ": " + quantity.message());
    return std::nullopt;
  }
  return *quantity;
}

std::optional<std::uint64_t> read_integer(const YamlNode& node, const std::string& path, Problems& problems) {
  const auto text = read_text(node, path, problems);
  if (!text) return std::nullopt;
  const bool hexadecimal = text->starts_with("0x");
  const std::string digits = hexadecimal ? text->substr(2) : *text;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  const bool octal_looking = !hexadecimal && digits.size() > 1 && digits[0] == '0';
  if (error != std::errc{} || end != digits.data() + digits.size() || octal_looking) {
    problems.add(node.position, path + ": " + in_quotes(*text) +
                                    " is not an integer: decimal without leading zeros or 0x, below 2^64");
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> read_name(const YamlNode& node, const std::string& path, Problems& problems) {
  const auto text = read_text(node, path, problems);
  if (text && !is_name(*text)) {
    problems.add(node.position, path + ": " + in_quotes(*text) +
                                    " is not a name: 1 to 64 of A-Z a-z 0-9 . _ -, starting with a letter or digit");
    return std::nullopt;
  }
  return text;
}

bool read_format_version(const YamlNode& root, const std::string& key, Problems& problems) {
  if (root.kind != YamlNode::Kind::mapping) {
    problems.add(root.position, wrong_kind(root, "", "a mapping"));
    return false;
  }
  if (root.children.empty() || root.children[0].key != key) {
    problems.add(root.position,
                 "the first key must be " + in_quotes(key) + ", the version of the format: \"" + key + ": 1\"");
    return false;
  }
  const YamlNode& version = root.children[0];
  if (version.kind == YamlNode::Kind::plain && version.text == "1") return true;
  problems.add(version.position, key + ": this version of benchsand reads format 1 only");
  return false;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  std::size_t best_distance = 3;  // more than two edits is another word
  for (const std::string& candidate : known) {
    if (word.size() > candidate.size() + 2) continue;  // also keeps the distance cheap for absurdly long keys
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance || distance * 2 > candidate.size()) continue;
    best = &candidate;
    best_distance = distance;
  }
  return best == nullptr ? "" : "; did you mean " + in_quotes(*best) + "?";
}

std::vector<std::string> limit_names() {
  std::vector<std::string> names;
  for (const LimitField& field : kLimitFields) names.emplace_back(field.name);
  return names;
}

}  // namespace benchsand
