// stdout and stderr in one stream, cut anywhere.
#include "oci/stream_frames.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

using namespace benchsand;

namespace {

std::string frame(int type, const std::string& text) {
  std::string bytes = {static_cast<char>(type), 0, 0, 0};
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(text.size() >> shift);
  return bytes + text;
}

struct Taken {
  std::array<std::string, 3> texts;
  std::string problem;
};

// Given in two parts, cut at `cut`.
Taken take(const std::string& bytes, std::size_t cut) {
  Taken taken;
  StreamFrames frames([&](StreamKind kind, std::string_view part) -> Result<void> {
    CHECK_FALSE(part.empty());
    taken.texts[static_cast<std::size_t>(kind)] += part;
    return {};
  });
  for (const auto& part : {bytes.substr(0, cut), bytes.substr(cut)})
    if (const auto done = frames.take(part); !done && taken.problem.empty()) taken.problem = done.error().message;
  if (const auto end = frames.end(); !end && taken.problem.empty()) taken.problem = end.error().message;
  return taken;
}

}  // namespace

TEST_CASE("frames are put together wherever they are cut") {
  const std::string large(70'000, 'x');
  const std::string bytes = frame(1, "out ") + frame(2, "err") + frame(0, "") + frame(1, std::string("a\0b\n", 4)) +
                            frame(2, large) + frame(0, "in") + frame(1, "end");
  for (std::size_t cut = 0; cut <= bytes.size(); cut += cut < 100 || cut + 40 > bytes.size() ? 1 : 997) {
    const Taken taken = take(bytes, cut);
    CHECK(taken.problem.empty());
    CHECK(taken.texts[0] == "in");
    CHECK(taken.texts[1] == std::string("out a\0b\nend", 11));
    CHECK(taken.texts[2] == "err" + large);
  }
  std::string text;
  StreamFrames frames([&](StreamKind, std::string_view part) -> Result<void> {
    text += part;
    return {};
  });
  for (const char byte : frame(1, "one by one")) REQUIRE(frames.take({&byte, 1}));
  CHECK(frames.end());
  CHECK(text == "one by one");
}

TEST_CASE("what is no frame ends the stream with its place") {
  const std::string good = frame(1, "good");
  const std::pair<std::string, std::string> kCases[] = {
      {frame(4, "x"), "the container's output, byte 12: what is sent is not in frames"},
      {"plain text of a terminal", "the container's output, byte 12: what is sent is not in frames"},
      {std::string("\1\1\0\0\0\0\0\1x", 9), "the container's output, byte 12: what is sent is not in frames"},
      {std::string("\1\0\0\1\0\0\0\1x", 9), "the container's output, byte 12: what is sent is not in frames"},
      {std::string("\1\0\0\0\1\0\0\1", 8),
       "the container's output, byte 12: a frame of 16777217 bytes, at most 16777216"},
      {"\1" + std::string("\0\0\0\xff\xff\xff\xff", 7),
       "the container's output, byte 12: a frame of 4294967295 bytes, at most 16777216"},
      {frame(3, "no \x1b[2Jspace"), "the container's output: the engine says: no \\x1b[2Jspace"},
      {frame(3, std::string(5000, 'x')), "the container's output: the engine says: " + std::string(600, 'x')}};
  for (const auto& [bad, problem] : kCases)
    for (std::size_t cut = 0; cut <= good.size() + bad.size(); ++cut) {
      const Taken taken = take(good + bad, cut);
      CHECK(taken.problem == problem);
      CHECK(taken.texts[1] == "good");
    }
}

TEST_CASE("a stream that ends in a frame, or goes on after an error, is an error") {
  const std::string whole = frame(1, "whole"), cut = frame(2, "cut");
  for (std::size_t size = 0; size <= cut.size(); ++size) {
    const bool is_whole = size == 0 || size == cut.size();
    const std::string at = std::to_string(whole.size() + (size < 8 ? 0 : size));
    CHECK(take(whole + cut.substr(0, size), 3).problem ==
          (is_whole ? "" : "the container's output, byte " + at + ": the stream is cut off in the midst of a frame"));
  }
  StreamFrames frames([](StreamKind, std::string_view) -> Result<void> { return fault("the disk is full"); });
  CHECK(frames.take(whole).error().message == "the disk is full");
  CHECK(frames.take(whole).error().message == "the container's output: more of a stream that has failed");
  CHECK(frames.end().error().message == "the container's output: the end of a stream that has failed");
}
