// The files that tell of the whole host: pressure, and what reached the block devices.
#include "oci/kernel_files.h"
#include "oci/kernel_text.h"

namespace benchsand {

using namespace kernel_text;

namespace {

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12": the averages are of other lengths than a run, only the total counts.
Result<std::uint64_t> pressure_total(std::string_view line, const std::string& source) {
  constexpr std::string_view key = "total=";
  const std::vector<std::string_view> parts = split(line, ' ');
  if (parts.size() != 5 || !parts[1].starts_with("avg10=") || !parts[4].starts_with(key))
    return bad_line(source, "'KIND avg10= avg60= avg300= total=' is due", line);
  return number(parts[4].substr(key.size()), source, line);
}

bool is_device(std::string_view word) {
  const std::size_t colon = word.find(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < word.size() &&
         word.find_first_not_of("0123456789:") == std::string_view::npos;
}

}  // namespace

Result<Pressure> parse_pressure(const std::string& text, const std::string& source) {
  std::optional<std::uint64_t> some, full;
  for (const std::string_view line : TRY(lines(text, source))) {
    const std::string_view kind = line.substr(0, line.find(' '));
    if (kind != "some" && kind != "full") return bad_line(source, "'some' or 'full' is due", line);
    auto& total = kind == "some" ? some : full;
    if (total) return bad_line(source, "the kind stands twice", line);
    total = TRY(pressure_total(line, source));
  }
  if (!some) return bad_file(source, "'some' is missing");
  return Pressure{*some, full};
}

Result<std::uint64_t> parse_io_stat_writes(const std::string& text, const std::string& source) {
  constexpr std::string_view key = "wbytes=";
  std::uint64_t bytes = 0;
  if (text.empty()) return bytes;  // no device was used
  for (const std::string_view line : TRY(lines(text, source))) {
    const std::vector<std::string_view> parts = split(line, ' ');
    if (!is_device(parts[0])) return bad_line(source, "'MAJOR:MINOR KEY=NUMBER' is due", line);
    bool counted = false;
    for (const std::string_view part : parts) {
      if (!part.starts_with(key)) continue;
      bytes += TRY(number(part.substr(key.size()), source, line));
      counted = true;
    }
    // A device without any counter is legal, one with others and without this one is not.
    if (!counted && line.find('=') != std::string_view::npos) return bad_line(source, "'wbytes=' is missing", line);
  }
  return bytes;
}

Result<std::uint64_t> parse_blkio_writes(const std::string& text, const std::string& source) {
  std::uint64_t bytes = 0;
  bool total = false;
  for (const std::string_view line : TRY(lines(text, source))) {
    const std::vector<std::string_view> parts = split(line, ' ');
    if (total) return bad_line(source, "nothing is due after 'Total'", line);
    total = parts.size() == 2 && parts[0] == "Total";
    if (!total && (parts.size() != 3 || !is_device(parts[0])))
      return bad_line(source, "'MAJOR:MINOR OPERATION NUMBER' is due", line);
    const std::uint64_t value = TRY(number(parts.back(), source, line));
    if (!total && parts[1] == "Write") bytes += value;
  }
  if (!total) return bad_file(source, "'Total' is missing");
  return bytes;
}

}  // namespace benchsand
