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

namespace {

constexpr std::size_t kFirstIdField = 2;

// `ids`: how many fields with an id there are from kFirstIdField on.
Result<std::vector<IdRange>> ids_of_line(std::string_view line, std::size_t ids, const std::string& source) {
  std::vector<IdRange> found;
  const std::vector<std::string_view> fields = split(line, ':');
  if (fields.size() < kFirstIdField + ids) return bad_line(source, "an id is due in the third field", line);
  for (std::size_t i = kFirstIdField; i < kFirstIdField + ids; ++i)
    found.push_back({TRY(number(fields[i], source, line)), 1});
  return found;
}

Result<std::vector<IdRange>> parse_account_ids(const std::string& text, std::size_t ids, const std::string& source) {
  std::vector<IdRange> all;
  if (text.empty()) return all;
  for (const std::string_view line : TRY(lines(text, source))) {
    if (trim(line).empty() || trim(line).starts_with('#')) continue;
    const auto found = ids_of_line(line, ids, source);
    if (!found && (line.starts_with('+') || line.starts_with('-'))) continue;
    if (!found) return found;
    all.insert(all.end(), found->begin(), found->end());
  }
  return all;
}

}  // namespace

Result<std::vector<IdRange>> parse_passwd_ids(const std::string& text, const std::string& source) {
  return parse_account_ids(text, 2, source);
}

Result<std::vector<IdRange>> parse_group_ids(const std::string& text, const std::string& source) {
  return parse_account_ids(text, 1, source);
}

}  // namespace benchsand
