#include "oci/toml_text.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace benchsand {

namespace {

using Path = std::vector<std::string>;

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) return byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F));
  if (code < 0x10000) {
    byte(0xE0 | code >> 12);
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
  }
  byte(0x80 | (code >> 6 & 0x3F));
  byte(0x80 | (code & 0x3F));
}

// A configuration nests a few levels; a reader that calls itself must not be driven deeper by its input.
constexpr int kDeepest = 32;

class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  Result<std::vector<TomlEntry>> read() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    for (skip(true); at_ < text_.size(); skip(true)) {
      TRY_VOID(peek() == '[' ? header() : key_value(table_));
      skip_blanks();
      if (peek() == '#') skip_comment();
      if (at_ < text_.size() && !at_line_end()) return bad("something after the end of the statement");
    }
    return std::move(entries_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool at_line_end() const { return peek() == '\n' || (peek() == '\r' && peek(1) == '\n'); }
  bool take(const char* word) {
    if (text_.compare(at_, std::char_traits<char>::length(word), word) != 0) return false;
    at_ += std::char_traits<char>::length(word);
    return true;
  }
  std::size_t line_of(std::size_t at) const {
    return 1 +
           static_cast<std::size_t>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  }
  std::unexpected<Error> bad(const std::string& what) const {
    const std::size_t at = std::min(at_, text_.size());
    const auto line = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
    const std::size_t column = at - (line == std::string::npos ? 0 : line + 1) + 1;
    return usage("read " + file_ + ": not TOML at line " + std::to_string(line_of(at)) + ", column " +
                 std::to_string(column) + ": " + what);
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  void skip_comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }
  void skip(bool lines) {  // blanks; line ends and comments too if `lines`
    for (skip_blanks(); lines && (at_line_end() || peek() == '#'); skip_blanks())
      if (peek() == '#')
        skip_comment();
      else
        at_ += peek() == '\r' ? 2 : 1;
  }

  Result<void> note(TomlEntry::Kind kind, Path path, std::size_t at) {
    TomlEntry entry;
    entry.kind = kind;
    entry.line = line_of(at);
    entry.path = std::move(path);
    if (kind == TomlEntry::Kind::array_of_tables) {  // its next element has the same keys again
      std::erase_if(seen_, [&](const Path& one) {
        return one.size() > entry.path.size() && std::equal(entry.path.begin(), entry.path.end(), one.begin());
      });
    } else if (!seen_.insert(entry.path).second) {
      at_ = at;
      return bad("'" + entry.path.back() + "' stands here for the second time");
    }
    entries_.push_back(std::move(entry));
    return {};
  }

  Result<void> header() {
    const std::size_t begin = at_;
    const bool array = take("[[");
    if (!array) ++at_;
    table_ = TRY(key());
    if (!take(array ? "]]" : "]")) return bad(std::string("expected ") + (array ? "]]" : "]"));
    return note(array ? TomlEntry::Kind::array_of_tables : TomlEntry::Kind::table, table_, begin);
  }

  Result<Path> key() {
    Path path;
    do {
      skip_blanks();
      if (peek() == '"' || peek() == '\'') {
        path.push_back(TRY(one_line_string()));
      } else {
        const std::size_t begin = at_;
        while (is_bare(peek())) ++at_;
        if (begin == at_) return bad("expected a key");
        path.push_back(text_.substr(begin, at_ - begin));
      }
      skip_blanks();
    } while (take("."));
    return path;
  }

  Result<void> key_value(Path table) {
    const std::size_t begin = at_;
    const Path name = TRY(key());
    table.insert(table.end(), name.begin(), name.end());
    if (!take("=")) return bad("expected = after the key");
    skip_blanks();
    TRY_VOID(note(peek() == '{' ? TomlEntry::Kind::inline_table : TomlEntry::Kind::value, table, begin));
    if (peek() == '{') return inline_table(table);
    const std::size_t mine = entries_.size() - 1;
    return value(mine);
  }

  // Strings are collected in entry `mine`.
  Result<void> value(std::size_t mine) {
    if (peek() == '[') return array(mine);
    if (peek() == '"' || peek() == '\'') {
      entries_[mine].strings.push_back(TRY(string()));
      return {};
    }
    const std::size_t begin = at_;
    while (is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':') ++at_;
    if (begin == at_) return bad("expected a value");
    // A date and its time may have a blank between them.
    if (at_ - begin == 10 && text_[begin + 4] == '-' && peek() == ' ' && peek(1) >= '0' && peek(1) <= '9')
      for (++at_; is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':';) ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    const bool number = word.find_first_of("0123456789") != std::string::npos && (word[0] < 'A' || word[0] == '_');
    const auto name = word.find_first_not_of("+-");
    const std::string unsigned_word = name == std::string::npos ? "" : word.substr(name);
    if (!number && word != "true" && word != "false" && unsigned_word != "inf" && unsigned_word != "nan") {
      at_ = begin;
      return bad("'" + word + "' is no value; a string needs quotes");
    }
    entries_[mine].text = word;
    return {};
  }

  Result<void> array(std::size_t mine) {
    if (++depth_ > kDeepest) return bad("nested too deep");
    ++at_;
    for (skip(true); peek() != ']'; skip(true)) {
      // Keys inside it are those of an element; nobody asks for them.
      TRY_VOID(peek() == '{' ? inline_table({std::to_string(at_)}) : value(mine));
      skip(true);
      if (!take(",") && peek() != ']') return bad("expected , or ] in an array");
    }
    ++at_;
    --depth_;
    return {};
  }

  Result<void> inline_table(const Path& table) {
    if (++depth_ > kDeepest) return bad("nested too deep");
    ++at_;
    skip_blanks();
    while (peek() != '}') {
      TRY_VOID(key_value(table));
      skip_blanks();
      if (!take(",") && peek() != '}') return bad("expected , or } in an inline table");
      skip_blanks();
    }
    ++at_;
    --depth_;
    return {};
  }

  Result<std::string> string() {
    for (const char* quotes : {"\"\"\"", "'''"}) {
      if (!take(quotes)) continue;
      std::string value;
      while (!take(quotes)) {
        if (at_ >= text_.size()) return bad(std::string("a string without its ") + quotes);
        if (peek() == '\\' && quotes[0] == '"')
          TRY_VOID(escape(value, true));
        else
          value += text_[at_++];
      }
      while (peek() == quotes[0]) value += text_[at_++];  // two may stand before the end
      return value;
    }
    return one_line_string();
  }

  Result<std::string> one_line_string() {
    const char quote = text_[at_++];
    std::string value;
    while (peek() != quote || at_ >= text_.size()) {
      if (at_ >= text_.size() || peek() == '\n') return bad("a string without its closing quote");
      if (peek() == '\\' && quote == '"')
        TRY_VOID(escape(value, false));
      else
        value += text_[at_++];
    }
    ++at_;
    return value;
  }

  Result<void> escape(std::string& value, bool lines) {
    ++at_;
    static constexpr std::string_view kNames = "btnfr\"\\", kValues = "\b\t\n\f\r\"\\";
    if (const auto named = kNames.find(peek()); peek() != '\0' && named != std::string_view::npos) {
      value += kValues[named];
      ++at_;
      return {};
    }
    if (lines && (peek() == ' ' || peek() == '\t' || at_line_end())) {
      at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
      return {};
    }
    const std::size_t digits = peek() == 'u' ? 4 : peek() == 'U' ? 8 : 0;
    if (digits == 0) return bad("an unknown escape in a string");
    ++at_;
    std::uint32_t code = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      static constexpr std::string_view kHex = "0123456789abcdef";
      const auto digit = peek() == '\0' ? std::string_view::npos : kHex.find(static_cast<char>(peek() | 0x20));
      if (digit == std::string_view::npos) return bad("an escape with too few digits in a string");
      code = code << 4 | static_cast<std::uint32_t>(digit);
    }
    if (code > 0x10FFFF) return bad("an escape that is no character");
    append_utf8(value, code);
    return {};
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Path table_;
  std::vector<TomlEntry> entries_;
  std::set<Path> seen_;
};

}  // namespace

Result<std::vector<TomlEntry>> read_toml(const std::string& text, const std::string& file) {
  return Reader(text, file).read();
}

}  // namespace benchsand
