#include "oci/units.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "oci/yaml_tree.h"

namespace benchsand {
namespace {

struct Suffix {
  std::string_view text;
  std::uint64_t scale;  // in the unit of the field
};

// The largest first; where two forms are equally short, the earlier one is written.
const std::vector<Suffix>& suffixes(Unit unit) {
  static const std::vector<Suffix> kDuration{
      {"h", 3'600'000'000}, {"m", 60'000'000}, {"s", 1'000'000}, {"ms", 1'000}, {"us", 1}};
  static const std::vector<Suffix> kBytes{{"GiB", 1U << 30U},
                                          {"GB", 1'000'000'000},
                                          {"MiB", 1U << 20U},
                                          {"MB", 1'000'000},
                                          {"KiB", 1U << 10U},
                                          {"KB", 1'000},
                                          {"B", 1}};
  static const std::vector<Suffix> kNone;
  switch (unit) {
    case Unit::duration_us:
      return kDuration;
    case Unit::bytes:
      return kBytes;
    case Unit::count:
    case Unit::milli:
      return kNone;
  }
  std::abort();  // not a value of the enumeration
}

// What a number without a suffix counts.
std::uint64_t plain_scale(Unit unit) {
  switch (unit) {
    case Unit::duration_us:
      return 1'000'000;
    case Unit::bytes:
    case Unit::count:
      return 1;
    case Unit::milli:
      return 1'000;
  }
  std::abort();  // not a value of the enumeration
}

std::string expectation(Unit unit) {
  switch (unit) {
    case Unit::duration_us:
      return "a time: a number with us, ms, s, m or h, or plain seconds";
    case Unit::bytes:
      return "a size: a number with B, KiB, MiB, GiB, KB, MB or GB, or plain bytes";
    case Unit::count:
      return "a count: a whole number without a unit";
    case Unit::milli:
      return "a number of processors: a number without a unit, with up to three decimals";
  }
  std::abort();  // not a value of the enumeration
}

std::unexpected<Error> not_a(const std::string& text, Unit unit) {
  return usage(in_quotes(text) + " is not " + expectation(unit));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& rest) {
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_digit);
  const std::string_view digits = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  rest.remove_prefix(digits.size());
  return digits;
}

// NaN and infinity as YAML, C and Python write them.
bool is_not_finite(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const std::string_view word = lower.starts_with('.') ? std::string_view(lower).substr(1) : lower;
  return word == "nan" || word == "inf" || word == "infinity";
}

std::optional<std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

struct Parts {
  std::string_view whole, fraction;  // digits
  std::uint64_t scale = 0;
};

std::optional<Parts> split(std::string_view text, Unit unit) {
  Parts parts;
  parts.whole = take_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    parts.fraction = take_digits(text);
    if (parts.fraction.empty()) return std::nullopt;
  }
  if (parts.whole.empty()) return std::nullopt;
  parts.scale = plain_scale(unit);
  if (text.empty()) return parts;
  const auto& known = suffixes(unit);
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const Suffix& suffix) { return suffix.text == text; });
  if (found == known.end()) return std::nullopt;
  parts.scale = found->scale;
  return parts;
}

std::string smallest_of(Unit unit) {
  switch (unit) {
    case Unit::duration_us:
      return "microseconds";
    case Unit::bytes:
      return "bytes";
    case Unit::count:
      return "tasks, files or descriptors";
    case Unit::milli:
      return "thousandths of a processor";
  }
  std::abort();  // not a value of the enumeration
}

std::optional<std::uint64_t> to_integer(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Exact decimal arithmetic: in binary floating point 0.29s would become 289999 us.
Result<std::uint64_t> exact_value(Parts parts, const std::string& text, Unit unit) {
  const auto whole = to_integer(parts.whole);
  const auto scaled = whole ? multiply(*whole, parts.scale) : std::nullopt;
  if (!scaled) return usage(in_quotes(text) + " is too large");
  while (parts.fraction.ends_with('0')) parts.fraction.remove_suffix(1);
  if (parts.fraction.empty()) return *scaled;
  // With at most nine digits the product below stays under 2^63; no unit has more that are not zero.
  const auto numerator = parts.fraction.size() <= 9 ? to_integer(parts.fraction) : std::nullopt;
  std::uint64_t denominator = 1;
  for (std::size_t i = 0; i < parts.fraction.size() && numerator; ++i) denominator *= 10;
  if (!numerator || *numerator * parts.scale % denominator != 0) {
    return usage(in_quotes(text) + " is not a whole number of " + smallest_of(unit));
  }
  const std::uint64_t part = *numerator * parts.scale / denominator;
  if (*scaled > std::numeric_limits<std::uint64_t>::max() - part) return usage(in_quotes(text) + " is too large");
  return *scaled + part;
}

std::string format_milli(std::uint64_t value) {
  std::string text = std::to_string(value / 1000);
  if (value % 1000 == 0) return text;
  text += '.';
  text += std::to_string(1000 + value % 1000).substr(1);
  while (text.ends_with('0')) text.pop_back();
  return text;
}

}  // namespace

Result<Quantity> parse_quantity(const std::string& text, Unit unit) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (is_not_finite(rest)) return Quantity{};
  const auto parts = split(rest, unit);
  if (!parts) return not_a(text, unit);
  if (negative) return Quantity{};
  const std::uint64_t value = TRY(exact_value(*parts, text, unit));
  return value == 0 ? Quantity{} : Quantity{.usable = true, .value = value};
}

std::string format_quantity(std::uint64_t value, Unit unit) {
  if (unit == Unit::milli) return format_milli(value);
  const auto& known = suffixes(unit);
  if (known.empty()) return std::to_string(value);
  if (value == 0) return unit == Unit::duration_us ? "0s" : "0B";
  std::string best;
  for (const Suffix& suffix : known) {
    if (value % suffix.scale != 0) continue;
    const std::string text = std::to_string(value / suffix.scale) + std::string(suffix.text);
    if (best.empty() || text.size() < best.size()) best = text;
  }
  return best;
}

}  // namespace benchsand
