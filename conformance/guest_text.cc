#include "conformance/guest_text.h"

#include "oci/html_page.h"
#include "oci/record.h"
#include "oci/report.h"
#include "oci/text.h"

namespace benchsand::conformance {

std::string cut_text(const std::string& bytes, std::size_t most) {
  if (bytes.size() <= most) return bytes;
  const std::string end = " (cut, of " + std::to_string(bytes.size()) + " bytes)";
  std::size_t kept = most - end.size();
  // Not within a character; what has more than three such bytes in a row is no UTF-8.
  for (int back = 0; back < 3 && kept > 0 && (static_cast<unsigned char>(bytes[kept]) & 0xC0) == 0x80; ++back) --kept;
  return bytes.substr(0, kept) + end;
}

std::string line_text(const std::string& bytes, std::size_t most) {
  std::string text = on_one_line(printable(cut_text(bytes, most)));
  // A runner of GitHub takes it for a command wherever it stands in a line.
  for (auto at = text.find("##["); at != std::string::npos; at = text.find("##[", at))
    text.replace(at, 2, "\\x23\\x23");
  return text;
}

std::string ascii_text(const std::string& bytes, std::size_t most) {
  const std::string line = line_text(bytes, most);
  std::string text;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (static_cast<unsigned char>(line[at]) < 0x80)
      text += line[at];
    else
      text += escaped_bytes(line, at, 1);
  }
  return text;
}

std::string xml_text(const std::string& bytes) {
  return html_text(line_text(bytes));
}

std::string markdown_code(const std::string& bytes) {
  if (bytes.empty()) return "";
  std::string text;
  for (const char c : line_text(bytes)) {
    if (c == '`' || c == '|')
      text += escaped_bytes(std::string(1, c), 0, 1);
    else
      text += c;
  }
  // A code span of blanks alone would be none.
  return "`" + (text.find_first_not_of(' ') == std::string::npos ? "\\x20" : text) + "`";
}

std::string markdown_prose(const std::string& bytes) {
  static const std::string kPlain = " .,()/'=+%";
  std::string text;
  for (const char c : line_text(bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') || byte >= 0x80;
    // "www." alone makes a link.
    const bool begins_link = c == '.' && !text.empty() && (text.back() | 0x20) == 'w';
    if (!begins_link && (letter || kPlain.find(c) != std::string::npos))
      text += c;
    else if (c == '@')
      text += "&#92;x40";  // an address of mail becomes a link even when its @ is an entity
    else
      text += "&#" + std::to_string(byte) + ";";
  }
  return text;
}

}  // namespace benchsand::conformance
