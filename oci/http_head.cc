#include "oci/http_head.h"

#include <algorithm>
#include <charconv>

namespace benchsand {

namespace {

constexpr std::string_view kEnd = "\r\n\r\n";

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

template <class Number>
bool take_number(std::string_view text, Number& number) {
  const auto [end, failed] = std::from_chars(text.begin(), text.end(), number);
  return failed == std::errc() && end == text.end();
}

// "HTTP/1.1 101 UPGRADED"
bool take_status(std::string_view line, HttpHead& head) {
  return (line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ")) && line.size() >= 12 &&
         (line.size() == 12 || line[12] == ' ') && take_number(line.substr(9, 3), head.status) && head.status >= 100;
}

bool take_header(std::string_view line, HttpHead& head) {
  if (line.find(':') == line.npos || line.find(':') == 0) return false;
  if (const auto type = header_value(line, "content-type")) head.content_type = *type;
  if (const auto coding = header_value(line, "transfer-encoding")) head.chunked = true;
  if (const auto length = header_value(line, "content-length")) {
    std::size_t bytes = 0;
    if (!take_number(*length, bytes) || head.content_length.value_or(bytes) != bytes) return false;
    head.content_length = bytes;
  }
  return true;
}

}  // namespace

std::optional<std::string> header_value(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':' || !same(line.substr(0, name.size()), name)) return {};
  line.remove_prefix(name.size() + 1);
  const auto first = line.find_first_not_of(" \t\r\n"), last = line.find_last_not_of(" \t\r\n");
  return first == line.npos ? "" : std::string(line.substr(first, last - first + 1));
}

Result<std::optional<HttpHead>> parse_http_head(std::string_view text) {
  constexpr std::string_view kBegin = "HTTP/1.";
  if (!text.starts_with(kBegin.substr(0, std::min(text.size(), kBegin.size())))) return fault("the answer is not HTTP");
  const std::size_t end = text.substr(0, kLargestHttpHead).find(kEnd);
  if (end == text.npos && text.size() >= kLargestHttpHead) return fault("the head of the answer is larger than 64KiB");
  if (end == text.npos) return std::nullopt;
  HttpHead head;
  head.size = end + kEnd.size();
  std::string_view rest = text.substr(0, end + 2);
  for (bool first = true; !rest.empty(); first = false) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    if (!(first ? take_status(line, head) : take_header(line, head))) return fault("the answer is not HTTP");
    rest.remove_prefix(line.size() + 2);
  }
  return head;
}

bool is_http_target(std::string_view text) {
  return text.starts_with('/') && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

std::string url_encoded(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.contains(c))
      result += c;
    else
      result += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return result;
}

}  // namespace benchsand
