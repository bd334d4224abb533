#include "shim/http_transfer.h"

#include "oci/units.h"

namespace benchsand {

bool HttpTransfer::give_up(Error why) {
  failed = std::move(why);
  return false;
}

bool HttpTransfer::take_head_line(std::string_view line) {
  moved_us = sys::monotonic_us();
  head_bytes += line.size();
  if (head_bytes > kLargestHttpHead) return give_up({Error::Kind::fault, kHeadTooLarge});
  if (line.starts_with("HTTP/")) sized = head_ended = false;
  if (line == "\r\n") head_ended = true;
  if (header_value(line, "content-length") || header_value(line, "transfer-encoding")) sized = true;
  return true;
}

bool HttpTransfer::take_body(std::string_view part, int status) {
  body_bytes += part.size();
  if (sink != nullptr && status / 100 == 2) {
    auto taken = (*sink)(part);
    moved_us = sys::monotonic_us();  // the time that the sink took is not the engine's silence
    return taken || give_up(std::move(taken.error()));
  }
  moved_us = sys::monotonic_us();
  if (answer.body.size() + part.size() > kLargestAnswer)
    return give_up({Error::Kind::fault, "the answer is larger than " + format_quantity(kLargestAnswer, Unit::bytes)});
  answer.body += part;
  return true;
}

std::optional<std::size_t> HttpTransfer::give(char* buffer, std::size_t size) {
  auto given = (*source)(buffer, size);
  moved_us = sys::monotonic_us();
  if (given) return *given;
  give_up(std::move(given.error()));
  return std::nullopt;
}

}  // namespace benchsand
