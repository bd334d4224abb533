// Texts of HTTP/1.1: the head of an answer, for a connection that becomes something else after it, and parts of a target.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "oci/result.h"

namespace benchsand {

inline constexpr std::size_t kLargestHttpHead = 64 << 10;

struct HttpHead {
  int status = 0;
  std::size_t size = 0;  // with the empty line
  std::string content_type;
  std::optional<std::size_t> content_length;
  bool chunked = false;
};

// nullopt: it is not all there yet. Kind fault: it is no head, or larger than kLargestHttpHead.
Result<std::optional<HttpHead>> parse_http_head(std::string_view text);

// The value of a header line ("Content-Type: text/plain\r\n") if that is its name; case does not matter in a name.
std::optional<std::string> header_value(std::string_view line, std::string_view name);

// Percent-encoded, for one part of a path or one value of a query.
std::string url_encoded(std::string_view text);

// Begins with a slash and has nothing that would end the line it stands in.
bool is_http_target(std::string_view text);

}  // namespace benchsand
