#include "oci/stream_frames.h"

#include <algorithm>
#include <string>

#include "oci/report.h"

namespace benchsand {

namespace {

constexpr unsigned char kEngineError = 3;

}  // namespace

Result<void> StreamFrames::take(std::string_view bytes) {
  if (failed_) return fault("the container's output: more of a stream that has failed");
  failed_ = true;
  while (!bytes.empty()) {
    if (header_bytes_ < header_.size()) {
      header_[header_bytes_++] = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      if (header_bytes_ == header_.size()) TRY_VOID(take_header());
    } else {
      const std::string_view part = bytes.substr(0, left_);
      bytes.remove_prefix(part.size());
      TRY_VOID(take_part(part));
    }
  }
  failed_ = false;
  return {};
}

Result<void> StreamFrames::take_header() {
  const std::string where = "the container's output, byte " + std::to_string(taken_) + ": ";
  left_ = 0;
  for (std::size_t i = 4; i < header_.size(); ++i) left_ = left_ << 8 | header_[i];
  if (header_[0] > kEngineError || header_[1] != 0 || header_[2] != 0 || header_[3] != 0)
    return fault(where + "what is sent is not in frames");
  if (left_ > kLargestFrame)
    return fault(where + "a frame of " + std::to_string(left_) + " bytes, at most " + std::to_string(kLargestFrame));
  taken_ += header_.size();
  if (left_ == 0) header_bytes_ = 0;
  return {};
}

Result<void> StreamFrames::take_part(std::string_view part) {
  left_ -= static_cast<std::uint32_t>(part.size());
  taken_ += part.size();
  if (left_ == 0) header_bytes_ = 0;
  if (header_[0] != kEngineError) return sink_(static_cast<StreamKind>(header_[0]), part);
  engine_error_ += part.substr(0, kLargestEngineError - std::min(kLargestEngineError, engine_error_.size()));
  if (left_ == 0) return fault("the container's output: the engine says: " + on_one_line(engine_error_));
  return {};
}

Result<void> StreamFrames::end() const {
  if (failed_) return fault("the container's output: the end of a stream that has failed");
  if (header_bytes_ == 0) return {};
  return fault("the container's output, byte " + std::to_string(taken_) +
               ": the stream is cut off in the midst of a frame");
}

}  // namespace benchsand
