// One HTTP call while it goes on: what has come, when, and why it was given up. Without libcurl, which calls this.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "shim/http.h"

namespace benchsand {

inline constexpr const char* kNotHttp = "the answer is not HTTP";
inline constexpr const char* kHeadTooLarge = "the head of the answer is larger than 64KiB";
inline constexpr const char* kToldToStop = "benchsand was told to stop";
static_assert(kLargestHttpHead == 64 << 10);

using HttpSink = std::function<Result<void>(std::string_view)>;
using HttpSource = std::function<Result<std::size_t>(char* buffer, std::size_t size)>;

struct HttpTransfer {
  const HttpSink* sink = nullptr;
  const HttpSource* source = nullptr;
  HttpAnswer answer;
  bool sized = false;  // the answer says where it ends
  bool head_ended = false;
  std::size_t head_bytes = 0;   // of all heads: there may be many before the last
  std::size_t body_bytes = 0;   // received
  std::uint64_t moved_us = 0;   // when something came or went last
  std::optional<Error> failed;  // what ends the call from this side

  bool is_stream() const { return sink != nullptr || source != nullptr; }
  // False: given up.
  bool take_head_line(std::string_view line);
  bool take_body(std::string_view part, int status);
  std::optional<std::size_t> give(char* buffer, std::size_t size);

 private:
  bool give_up(Error why);
};

}  // namespace benchsand
