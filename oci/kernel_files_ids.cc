#include "oci/kernel_files.h"
#include "oci/kernel_text.h"

namespace benchsand {

using namespace kernel_text;

Result<std::vector<IdMapping>> parse_id_map(const std::string& text, const std::string& source) {
  std::vector<IdMapping> map;
  if (text.empty()) return map;
  for (const std::string_view line : TRY(lines(text, source))) {
    const std::vector<std::string_view> columns = words(line);
    if (columns.size() != 3) return bad_line(source, "three numbers are due", line);
    map.push_back({TRY(number(columns[0], source, line)), TRY(number(columns[1], source, line)),
                   TRY(number(columns[2], source, line))});
  }
  return map;
}

Result<std::vector<IdRange>> parse_subordinate_ids(const std::string& text, const std::string& source) {
  std::vector<IdRange> ranges;
  if (text.empty()) return ranges;
  for (const std::string_view line : TRY(lines(text, source))) {
    if (trim(line).empty() || trim(line).starts_with('#')) continue;
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() != 3) return bad_line(source, "'NAME:FIRST:COUNT' is due", line);
    ranges.push_back({TRY(number(fields[1], source, line)), TRY(number(fields[2], source, line))});
  }
  return ranges;
}

}  // namespace benchsand
