#include "oci/plot.h"

#include <doctest/doctest.h>

#include "oci/series.h"
#include "oci/timeline.h"
#include "sample_record.h"

using namespace benchsand;
using nlohmann::json;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text)
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  lines.pop_back();
  return lines;
}

std::size_t columns(const std::string& line) {
  std::size_t count = 0;
  for (const char c : line) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

// One second in ten samples: memory rises to 200 of 256 MiB, the rest stays low.
json risen() {
  Timeline timeline(100'000);
  for (std::uint64_t i = 1; i <= 10; ++i) timeline.add({i * 100'000, i * (20 << 20), i * 1000, 2, 4096, 0});
  json record = sample::record(timeline.json());
  record["evidence"]["spent"]["wall-time"]["used_us"]["observed"] = 1'000'000;
  return record;
}

}  // namespace

TEST_CASE("a plot says what it shows, with units, and draws a rise as a rise") {
  const auto lines = lines_of(plot(risen(), {60, true}));
  REQUIRE(lines.size() == 4 * 7 + 2);
  CHECK(lines[0] == "           memory, sampled up to 200MiB (limit 256MiB, dotted)");
  CHECK(lines[1] == "   256MiB |- - - - - - - - - - - - - - - - - - - - - - - - -");
  CHECK(lines[2] == "          |                                                #");
  CHECK(lines[4] == "          |                             ####################");
  CHECK(lines[6] == "        0 |    #############################################");
  CHECK(lines[7] == "           CPU time, sampled up to 10ms (limit 2s, off the scale)");
  CHECK(lines[8].starts_with("     10ms |"));
  CHECK(lines[14] == "           tasks, sampled up to 2 (limit 32, off the scale)");
  CHECK(lines[21] == "           output, sampled up to 4KiB (limit 64MiB, off the scale)");
  CHECK(lines[28] == "          +-------------------------------------------------");
  CHECK(lines[29] == "           0                                              1s");
}

TEST_CASE("a plot is as wide as asked, in braille and in ASCII") {
  for (const std::size_t width : {40, 41, 80, 200})
    for (const bool ascii : {true, false}) {
      CAPTURE(width);
      std::size_t widest = 0;
      for (const auto& line : lines_of(plot(risen(), {width, ascii}))) {
        // The words above a chart may be longer than a very narrow terminal.
        if (line.find("sampled up to") == std::string::npos) widest = std::max(widest, columns(line));
        if (ascii)
          for (const char c : line) CHECK(static_cast<unsigned char>(c) < 0x80);
      }
      CHECK(widest == width);
    }
  CHECK(lines_of(plot(risen(), {0, true}))[5].size() == 40);
  CHECK(plot(risen(), {80, false}).find("\u28ff") != std::string::npos);
}

TEST_CASE("without samples a plot is one line that says why") {
  const auto without = [](const json& timeline, const char* cause) {
    json record = sample::record(timeline);
    record["end"]["cause"] = cause;
    return plot(record, {});
  };
  const json empty = {{"interval_us", 100'000}, {"samples", json::array()}, {"unread", 0}};
  CHECK(without(empty, "exited") == "no timeline: the run ended before its first sample, which was due after 100ms\n");
  CHECK(without(nullptr, "exited") == "no timeline: the profile takes no samples (timeline: none)\n");
  CHECK(without(nullptr, "not-started") == "no timeline: the candidate never started\n");
  json unread = empty;
  unread["unread"] = 3;
  CHECK(without(unread, "exited") == "no timeline: none of its samples could be read\n");
}

TEST_CASE("numbers of any size are drawn, from a record that somebody made up") {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  Timeline timeline(kMost / 2);
  timeline.add({0, kMost, 0, kMost, 1, 0});
  timeline.add({kMost, 1, kMost, 0, kMost, kMost});
  json record = sample::record(timeline.json());
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{1}, kMost}) {
    for (auto& [name, value] : record["policy"]["limits"].items()) value = limit;
    CHECK(lines_of(plot(record, {80, true})).size() == 5 * 7 + 2);
    CHECK(lines_of(plot(record, {80, false})).size() == 5 * 5 + 2);
  }
}

TEST_CASE("rough numbers have a unit and at most three digits and a tenth") {
  const std::pair<std::uint64_t, const char*> bytes[] = {
      {0, "0"}, {1, "1B"}, {1023, "1023B"}, {1536, "1.5KiB"}, {104857600, "100MiB"}, {1181116007, "1.1GiB"}};
  for (const auto& [value, text] : bytes) CHECK(rough(value, Unit::bytes) == text);
  const std::pair<std::uint64_t, const char*> times[] = {
      {1, "1us"}, {1500, "1.5ms"}, {999'999, "999ms"}, {90'000'000, "1.5m"}, {7'200'000'000, "2h"}};
  for (const auto& [value, text] : times) CHECK(rough(value, Unit::duration_us) == text);
  CHECK(rough(12, Unit::count) == "12");
}
