// Text that a candidate may have chosen, for those who read reports: terminals, logs of a CI service, browsers. It stays on its
// line and in its quotes, begins no command, and is not longer than a reader can bear.
#pragma once

#include <cstddef>
#include <string>

namespace benchsand::conformance {

inline constexpr std::size_t kLongestText = 1024;  // bytes of one field in a report

// At most `most` bytes (no fewer than 64): the beginning and how many there were. Cutting twice changes nothing more.
std::string cut_text(const std::string& bytes, std::size_t most);

// UTF-8 on one line: what is no UTF-8, a control character, invisible, or begins a command of a GitHub log ("##[") is \xNN, and a
// backslash is two. Different bytes give different texts.
std::string line_text(const std::string& bytes, std::size_t most = kLongestText);

// The same in ASCII: every byte takes one column of a terminal.
std::string ascii_text(const std::string& bytes, std::size_t most = kLongestText);

// line_text as content of an XML element or of a quoted attribute.
std::string xml_text(const std::string& bytes);

// line_text in Markdown: as code, in which nothing is markup and which does not end a cell of a table; and as prose.
std::string markdown_code(const std::string& bytes);
std::string markdown_prose(const std::string& bytes);

}  // namespace benchsand::conformance
