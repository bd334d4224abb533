// The stream of a container's output as engines send it (attach, logs): frames of stdout and stderr in one connection.
//
//   type (0 stdin, 1 stdout, 2 stderr, 3 an error of the engine), three zeros, length in four bytes, the biggest first; then that many bytes
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "oci/result.h"

namespace benchsand {

// Engines send what they have read in one go, at most 32 KiB, or a line of a log. Larger is no frame.
inline constexpr std::uint32_t kLargestFrame = 16 << 20;
inline constexpr std::size_t kLargestEngineError = 600;

enum class StreamKind : std::uint8_t { standard_input, standard_output, standard_error };

class StreamFrames {
 public:
  // Called with every part of a frame as it comes, never with an empty one.
  using Sink = std::function<Result<void>(StreamKind kind, std::string_view part)>;
  explicit StreamFrames(Sink sink) : sink_(std::move(sink)) {}

  // The next bytes, cut anywhere. Kind fault: they are no frames, or the engine says in one that it failed. After an error nothing
  // more is taken.
  Result<void> take(std::string_view bytes);
  // Where the stream ends: an error in the midst of a frame.
  Result<void> end() const;

 private:
  Result<void> take_header();
  Result<void> take_part(std::string_view part);

  Sink sink_;
  std::array<unsigned char, 8> header_{};
  std::size_t header_bytes_ = 0;
  std::uint32_t left_ = 0;  // of the frame's bytes
  std::uint64_t taken_ = 0;
  bool failed_ = false;
  std::string engine_error_;
};

}  // namespace benchsand
