#include "oci/units.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace benchsand;

namespace {

const std::string kNotATime = " is not a time: a number with us, ms, s, m or h, or plain seconds";
const std::string kNotASize = " is not a size: a number with B, KiB, MiB, GiB, KB, MB or GB, or plain bytes";
const std::string kNotACount = " is not a count: a whole number without a unit";
const std::string kNotCpus = " is not a number of processors: a number without a unit, with up to three decimals";

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_CASE("quantities that can be used") {
  struct Case {
    std::string text;
    Unit unit;
    std::uint64_t value;
  };
  for (const Case& c : std::vector<Case>{
           {"500ms", Unit::duration_us, 500'000},
           {"2s", Unit::duration_us, 2'000'000},
           {"1m", Unit::duration_us, 60'000'000},
           {"1h", Unit::duration_us, 3'600'000'000},
           {"7us", Unit::duration_us, 7},
           {"2", Unit::duration_us, 2'000'000},
           {"+2s", Unit::duration_us, 2'000'000},
           {"1.5", Unit::duration_us, 1'500'000},
           {"0.29s", Unit::duration_us, 290'000},
           {"0.000001s", Unit::duration_us, 1},
           {"1.0000010s", Unit::duration_us, 1'000'001},
           {"0.5m", Unit::duration_us, 30'000'000},
           {"64MiB", Unit::bytes, 67'108'864},
           {"1GiB", Unit::bytes, 1'073'741'824},
           {"10MB", Unit::bytes, 10'000'000},
           {"1KB", Unit::bytes, 1'000},
           {"1KiB", Unit::bytes, 1'024},
           {"3GB", Unit::bytes, 3'000'000'000},
           {"12B", Unit::bytes, 12},
           {"4096", Unit::bytes, 4'096},
           {"1.25GiB", Unit::bytes, 1'342'177'280},
           {"0.000000001GB", Unit::bytes, 1},
           {"18446744073709551615", Unit::bytes, kMax},
           {"32", Unit::count, 32},
           {"010", Unit::count, 10},
           {"32.0", Unit::count, 32},
           {"1", Unit::milli, 1'000},
           {"0.5", Unit::milli, 500},
           {"1.125", Unit::milli, 1'125},
           {"0.001", Unit::milli, 1},
       }) {
    CAPTURE(c.text);
    const auto quantity = parse_quantity(c.text, c.unit);
    REQUIRE(quantity.has_value());
    CHECK(quantity->usable);
    CHECK(quantity->value == c.value);
  }
}

TEST_CASE("zero, negative and not finite quantities are read, and are not usable, in every unit") {
  for (const LimitField& field : kLimitFields) {
    for (const std::string text : {"0", "-0", "0.0", "-1", "-2.5", "+0", "nan", "NaN", "-nan", ".nan", ".NaN", "inf",
                                   "+inf", "-inf", ".inf", "-.INF", "Infinity", "-18446744073709551616"}) {
      CAPTURE(field.name);
      CAPTURE(text);
      const auto quantity = parse_quantity(text, field.unit);
      REQUIRE(quantity.has_value());
      CHECK_FALSE(quantity->usable);
      CHECK(quantity->value == 0);
    }
  }
  for (const std::string text : {"0s", "-5ms", "0.000h"}) CHECK_FALSE(parse_quantity(text, Unit::duration_us)->usable);
  for (const std::string text : {"0MiB", "-1GiB", "0B"}) CHECK_FALSE(parse_quantity(text, Unit::bytes)->usable);
}

TEST_CASE("texts that are no quantity, with the exact message") {
  struct Case {
    std::string text;
    Unit unit;
    std::string rest;  // of the message, after the quoted text
  };
  const std::vector<Case> cases{
      {"", Unit::duration_us, kNotATime},
      {"s", Unit::duration_us, kNotATime},
      {"-", Unit::duration_us, kNotATime},
      {"2 s", Unit::duration_us, kNotATime},
      {" 2s", Unit::duration_us, kNotATime},
      {"2S", Unit::duration_us, kNotATime},
      {"2sec", Unit::duration_us, kNotATime},
      {"2d", Unit::duration_us, kNotATime},
      {"2s3ms", Unit::duration_us, kNotATime},
      {"1e3", Unit::duration_us, kNotATime},
      {"0x10", Unit::duration_us, kNotATime},
      {"1.s", Unit::duration_us, kNotATime},
      {".5s", Unit::duration_us, kNotATime},
      {"1.2.3", Unit::duration_us, kNotATime},
      {"--1", Unit::duration_us, kNotATime},
      {"-2KiB", Unit::duration_us, kNotATime},
      {"1,5", Unit::duration_us, kNotATime},
      {"infs", Unit::duration_us, kNotATime},
      {"unlimited", Unit::duration_us, kNotATime},
      {"64M", Unit::bytes, kNotASize},
      {"64mib", Unit::bytes, kNotASize},
      {"64TiB", Unit::bytes, kNotASize},
      {"5s", Unit::bytes, kNotASize},
      {"max", Unit::bytes, kNotASize},
      {"3k", Unit::count, kNotACount},
      {"3B", Unit::count, kNotACount},
      {"1s", Unit::milli, kNotCpus},
      {"50%", Unit::milli, kNotCpus},
      {"1.5us", Unit::duration_us, " is not a whole number of microseconds"},
      {"0.0000001", Unit::duration_us, " is not a whole number of microseconds"},
      {"0.3B", Unit::bytes, " is not a whole number of bytes"},
      {"0.1KiB", Unit::bytes, " is not a whole number of bytes"},
      {"1.5", Unit::count, " is not a whole number of tasks, files or descriptors"},
      {"0.0005", Unit::milli, " is not a whole number of thousandths of a processor"},
      {"0.00000000000000000001GB", Unit::bytes, " is not a whole number of bytes"},
      // Its product with the scale is 0 modulo 2^64.
      {"0.17179869184GiB", Unit::bytes, " is not a whole number of bytes"},
      {"18446744073709551616", Unit::bytes, " is too large"},
      {"18446744073709551616", Unit::count, " is too large"},
      {"17179869184GiB", Unit::bytes, " is too large"},
      {"18446744073709551.616", Unit::milli, " is too large"},
      {"5124095577h", Unit::duration_us, " is too large"},
      {"999999999999999999999999", Unit::duration_us, " is too large"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto quantity = parse_quantity(c.text, c.unit);
    REQUIRE_FALSE(quantity.has_value());
    CHECK(quantity.error().kind == Error::Kind::usage);
    CHECK(quantity.message() == "\"" + c.text + "\"" + c.rest);
  }
}

TEST_CASE("a NUL inside a number ends nothing") {
  const auto quantity = parse_quantity(std::string("2s\0", 3), Unit::duration_us);
  REQUIRE_FALSE(quantity.has_value());
  CHECK(quantity.message() == "\"2s\\x00\"" + kNotATime);
}

TEST_CASE("the shortest exact form is written") {
  struct Case {
    std::uint64_t value;
    Unit unit;
    std::string text;
  };
  for (const Case& c : std::vector<Case>{
           {268'435'456, Unit::bytes, "256MiB"},
           {10'000'000, Unit::bytes, "10MB"},
           {4'294'967'296, Unit::bytes, "4GiB"},
           {1'023, Unit::bytes, "1023B"},
           {1'024, Unit::bytes, "1KiB"},
           {0, Unit::bytes, "0B"},
           {kMax, Unit::bytes, "18446744073709551615B"},
           {1, Unit::bytes, "1B"},
           {2'000'000, Unit::duration_us, "2s"},
           {60'000'000, Unit::duration_us, "1m"},
           {90'000'000, Unit::duration_us, "90s"},
           {1'500'000, Unit::duration_us, "1500ms"},
           {1, Unit::duration_us, "1us"},
           {3'600'000'000, Unit::duration_us, "1h"},
           {0, Unit::duration_us, "0s"},
           {32, Unit::count, "32"},
           {1'500, Unit::milli, "1.5"},
           {1'000, Unit::milli, "1"},
           {1, Unit::milli, "0.001"},
           {1'120, Unit::milli, "1.12"},
       }) {
    CHECK(format_quantity(c.value, c.unit) == c.text);
  }
}

TEST_CASE("what is written is read back as the same value") {
  for (const LimitField& field : kLimitFields) {
    for (std::uint64_t value = 1; value < kMax / 7; value = value * 5 + 3) {
      for (const std::uint64_t round : {value, value * 1000 / 1000, (value / 1024 + 1) * 1024}) {
        const std::string text = format_quantity(round, field.unit);
        CAPTURE(text);
        const auto quantity = parse_quantity(text, field.unit);
        REQUIRE(quantity.has_value());
        CHECK(quantity->value == round);
      }
    }
  }
}
