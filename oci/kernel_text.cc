#include "oci/kernel_text.h"

#include <algorithm>
#include <charconv>

namespace benchsand::kernel_text {
namespace {

constexpr std::size_t kLongestQuote = 160;
constexpr std::string_view kBlanks = " \t";

std::string printable(std::string_view line) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string text;
  for (const char c : line.substr(0, kLongestQuote)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      text += c;
    else
      text.append("\\x").append(1, hex[byte >> 4]).append(1, hex[byte & 15]);
  }
  if (line.size() > kLongestQuote) text += "...";
  return text;
}

}  // namespace

std::unexpected<Error> bad_line(const std::string& source, const std::string& why, std::string_view line) {
  return fault("parse " + source + ": " + why + ": '" + printable(line) + "'");
}

std::unexpected<Error> bad_file(const std::string& source, const std::string& why) {
  return fault("parse " + source + ": " + why);
}

Result<std::vector<std::string_view>> lines(std::string_view text, const std::string& source) {
  if (text.empty()) return bad_file(source, "the file is empty");
  if (text.find('\0') != std::string_view::npos) return bad_file(source, "it holds a NUL byte");
  if (text.back() != '\n') return bad_file(source, "the last line is cut off");
  text.remove_suffix(1);
  return split(text, '\n');
}

Result<std::string_view> only_line(std::string_view text, const std::string& source) {
  const std::vector<std::string_view> all = TRY(lines(text, source));
  if (all.size() != 1) return bad_file(source, "one line is due, there are " + std::to_string(all.size()));
  return all.front();
}

Result<std::uint64_t> number(std::string_view word, const std::string& source, std::string_view line, int base) {
  std::uint64_t value = 0;
  const char* end = word.data() + word.size();
  // from_chars takes no sign for unsigned types, no blanks and no prefix.
  const auto [stop, code] = std::from_chars(word.data(), end, value, base);
  if (code == std::errc::result_out_of_range) return bad_line(source, "a number is not below 2^64", line);
  if (code != std::errc{} || stop != end) {
    const std::string kind = base == 10 ? "a decimal" : base == 16 ? "a hexadecimal" : "an octal";
    return bad_line(source, "'" + printable(word) + "' is not " + kind + " number", line);
  }
  return value;
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = line.find(separator); at != std::string_view::npos; at = line.find(separator)) {
    parts.push_back(line.substr(0, at));
    line.remove_prefix(at + 1);
  }
  parts.push_back(line);
  return parts;
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> found;
  for (;;) {
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return found;
    line.remove_prefix(begin);
    const std::size_t length = std::min(line.find_first_of(kBlanks), line.size());
    found.push_back(line.substr(0, length));
    line.remove_prefix(length);
  }
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace benchsand::kernel_text
