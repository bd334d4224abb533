// What the parsers of kernel files share: whole lines, strict numbers, one form of message.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "oci/result.h"

namespace benchsand::kernel_text {

// "parse SOURCE: WHY: 'LINE'"; the line is shortened and its control characters are escaped, for a candidate can choose
// parts of it (its own name, for example).
std::unexpected<Error> bad_line(const std::string& source, const std::string& why, std::string_view line);
std::unexpected<Error> bad_file(const std::string& source, const std::string& why);

// The lines of a whole file, without their '\n'. An empty file, a NUL byte and a last line that is cut off are errors.
Result<std::vector<std::string_view>> lines(std::string_view text, const std::string& source);
// The file's only line.
Result<std::string_view> only_line(std::string_view text, const std::string& source);

// Digits of the base and nothing else, below 2^64.
Result<std::uint64_t> number(std::string_view word, const std::string& source, std::string_view line, int base = 10);

std::vector<std::string_view> split(std::string_view line, char separator);
// Words between runs of blanks and tabs, for files that pad their columns.
std::vector<std::string_view> words(std::string_view line);
std::string_view trim(std::string_view text);

}  // namespace benchsand::kernel_text
