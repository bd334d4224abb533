#include "oci/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>

namespace benchsand {
namespace {

constexpr std::size_t kLargestFile = 128 * 1024;  // yaml-cpp needs quadratic time for some texts
constexpr std::size_t kDeepest = 16;
constexpr std::size_t kWidestExcerpt = 120;  // characters of a source line that a message shows

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

// The bytes of the UTF-8 character that starts at `at`; 0 when none does (overlong forms and surrogates included).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned second = byte(at + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
}

// The C0 set, DEL, and the C1 set, whose U+009B starts a terminal's escape sequence like ESC [ does.
bool is_control(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const bool second_set = byte == 0xC2 && utf8_length(text, at) == 2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
  return byte < 0x20 || byte == 0x7F || second_set;
}

// yaml-cpp ends a file silently at the control character 4 and replaces what is not UTF-8, so that the tree would not be
// the text that a reviewer saw. Both are refused before it sees them.
std::optional<std::string> bad_byte(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte == 0) return "the file holds a NUL byte";
  if (byte == '\r' && at + 1 < text.size() && text[at + 1] == '\n') return std::nullopt;
  if (is_control(text, at) && byte != '\n' && byte != '\t') return "the file holds a control character";
  if (utf8_length(text, at) == 0) return "the file is not UTF-8";
  if (text.substr(at).starts_with("\xEF\xBB\xBF"))
    return "the file holds a byte order mark; save it as UTF-8 without one";
  return std::nullopt;
}

Result<void> check_bytes(const YamlSource& source) {
  const std::string_view text = source.text();
  int line = 0;
  std::size_t line_start = 0;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text, at)) {
    if (const auto problem = bad_byte(text, at)) {
      return usage(source.diagnostic(source.position_at(line, static_cast<int>(at - line_start)), *problem));
    }
    if (text[at] == '\n') {
      ++line;
      line_start = at + 1;
    }
  }
  return {};
}

[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& problem) {
  throw YAML::ParserException(mark, problem);  // caught in parse_yaml with yaml-cpp's own
}

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlSource& source) : source_(source) {}

  std::optional<YamlNode> root() && { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) refuse(mark, "a second document starts here; one file holds one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    scalar(mark, "?", anchor, YamlNode::Kind::empty, "");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, "aliases are not supported"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    scalar(mark, tag, anchor, tag == "!" ? YamlNode::Kind::quoted : YamlNode::Kind::plain, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    std::optional<YamlNode> key;               // of a mapping: read, its value not yet
    std::map<std::string, std::size_t> lines;  // of the keys so far
  };

  Position position(const YAML::Mark& mark) const { return source_.position_at(mark.line, mark.column); }

  void check_plain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) refuse(mark, "anchors are not supported");
    // A lone "!" tag reaches us like a quoted scalar; the text tells them apart.
    const bool tagged = (tag != "" && tag != "?" && tag != "!") || source_.byte_at(mark.line, mark.column) == '!';
    if (tagged) refuse(mark, "tags are not supported");
  }

  bool key_is_due() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::mapping && !open_.back().key;
  }

  void scalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind,
              const std::string& value) {
    check_plain(mark, tag, anchor);
    YamlNode node{
        .kind = kind, .position = position(mark), .text = value, .key = "", .key_position = {}, .children = {}};
    if (key_is_due())
      take_key(mark, std::move(node));
    else
      add(std::move(node));
  }

  void take_key(const YAML::Mark& mark, YamlNode key) {
    if (!key.is_text()) refuse(mark, "a key is missing here");
    if (key.kind == YamlNode::Kind::plain && key.text == "<<") refuse(mark, "merge keys are not supported");
    const auto [first, is_new] = open_.back().lines.try_emplace(key.text, key.position.line);
    if (!is_new) {
      refuse(mark, "duplicate key " + in_quotes(key.text) + ", first on line " + std::to_string(first->second));
    }
    open_.back().key = std::move(key);
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    check_plain(mark, tag, anchor);
    if (key_is_due()) refuse(mark, "a key must be text (or a bracket is not closed)");
    if (open_.size() == kDeepest) refuse(mark, "nested deeper than " + std::to_string(kDeepest) + " levels");
    open_.emplace_back();
    open_.back().node.kind = kind;
    open_.back().node.position = position(mark);
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& parent = open_.back();
    if (parent.key) {
      node.key = std::move(parent.key->text);
      node.key_position = parent.key->position;
      // yaml-cpp places nothing at whatever comes next, which may be the next key.
      if (node.kind == YamlNode::Kind::empty) node.position = node.key_position;
      parent.key.reset();
    }
    parent.node.children.push_back(std::move(node));
  }

  const YamlSource& source_;
  std::vector<Frame> open_;
  std::optional<YamlNode> root_;
};

// A part of the line around a column (from 0), so that a very long line does not bury the message.
struct Excerpt {
  std::string text;
  std::string before_caret;
};

Excerpt excerpt(std::string_view line, std::size_t column) {
  const std::size_t first = column < kWidestExcerpt * 3 / 4 ? 0 : column - kWidestExcerpt / 2;
  Excerpt result;
  std::size_t character = 0;
  for (std::size_t at = 0; at < line.size() && character < first + kWidestExcerpt; ++character) {
    const std::size_t length = std::max<std::size_t>(utf8_length(line, at), 1);
    const bool printable = utf8_length(line, at) != 0 && (line[at] == '\t' || !is_control(line, at));
    if (character >= first) {
      result.text += printable ? std::string(line.substr(at, length)) : "?";
      // A tab stays a tab, so that the caret lines up whatever its width is.
      if (character < column) result.before_caret += line[at] == '\t' ? '\t' : ' ';
    }
    at += length;
  }
  result.before_caret.resize(std::max(result.before_caret.size(), column - first), ' ');
  return result;
}

}  // namespace

YamlSource::YamlSource(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)), line_starts_{0} {
  for (std::size_t at = 0; at < text_.size(); ++at) {
    if (text_[at] == '\n') line_starts_.push_back(at + 1);
  }
}

std::string_view YamlSource::line(std::size_t index) const {
  const std::size_t start = line_starts_[index];
  const std::size_t end = std::min(text_.find('\n', start), text_.size());
  std::string_view whole = std::string_view(text_).substr(start, end - start);
  if (whole.ends_with('\r')) whole.remove_suffix(1);
  return whole;
}

Position YamlSource::position_at(int line_number, int byte_column) const {
  const auto index = std::min(static_cast<std::size_t>(std::max(line_number, 0)), line_starts_.size() - 1);
  const std::string_view before = line(index).substr(0, static_cast<std::size_t>(std::max(byte_column, 0)));
  return {.line = index + 1, .column = count_characters(before) + 1};
}

char YamlSource::byte_at(int line_number, int byte_column) const {
  if (line_number < 0 || byte_column < 0 || static_cast<std::size_t>(line_number) >= line_starts_.size()) return '\0';
  const std::string_view whole = line(static_cast<std::size_t>(line_number));
  const auto column = static_cast<std::size_t>(byte_column);
  return column < whole.size() ? whole[column] : '\0';
}

std::string YamlSource::where(Position position) const {
  return name_ + ":" + std::to_string(position.line) + ":" + std::to_string(position.column);
}

std::string YamlSource::diagnostic(Position position, const std::string& problem) const {
  std::string message = where(position) + ": error: " + problem;
  const std::string_view whole = line(std::min(position.line, line_starts_.size()) - 1);
  if (whole.empty()) return message;
  const Excerpt part = excerpt(whole, position.column - 1);
  return message + "\n  " + part.text + "\n  " + part.before_caret + "^";
}

Result<YamlNode> parse_yaml(const YamlSource& source) {
  if (source.text().size() > kLargestFile) {
    return usage(source.diagnostic({}, "the file is larger than " + std::to_string(kLargestFile) + " bytes"));
  }
  TRY_VOID(check_bytes(source));
  TreeBuilder builder(source);
  try {
    // Without the end marker yaml-cpp takes a quoted scalar whose closing quote is missing.
    std::istringstream stream(source.text() + (source.text().ends_with('\n') ? "...\n" : "\n...\n"));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const bool open_quote = error.msg == YAML::ErrorMsg::DOC_IN_SCALAR || error.msg == YAML::ErrorMsg::EOF_IN_SCALAR;
    return usage(source.diagnostic(source.position_at(error.mark.line, error.mark.column),
                                   open_quote ? "quotes are not closed before this place" : error.msg));
  }
  std::optional<YamlNode> root = std::move(builder).root();
  if (!root || root->kind == YamlNode::Kind::empty) return usage(source.diagnostic({}, "the file is empty"));
  return std::move(*root);
}

std::string in_quotes(std::string_view text) {
  constexpr std::array kHex{'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (is_control(text, at)) {
      const unsigned code = byte == 0xC2 ? static_cast<unsigned char>(text[++at]) : byte;
      result += std::string("\\x") + kHex[code / 16] + kHex[code % 16];
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace benchsand
