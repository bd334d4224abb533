// The files of a control group, v1 and v2, and /proc/PID/cgroup.
#include <algorithm>

#include "oci/kernel_files.h"
#include "oci/kernel_text.h"

namespace benchsand {

using namespace kernel_text;

Result<std::uint64_t> parse_counter(const std::string& text, const std::string& source) {
  const std::string_view line = TRY(only_line(text, source));
  return number(line, source, line);
}

Result<std::optional<std::uint64_t>> parse_limit(const std::string& text, const std::string& source) {
  const std::string_view line = TRY(only_line(text, source));
  if (line == "max") return std::optional<std::uint64_t>{};
  return std::optional<std::uint64_t>(TRY(number(line, source, line)));
}

Result<std::optional<std::uint64_t>> parse_cfs_quota(const std::string& text, const std::string& source) {
  const std::string_view line = TRY(only_line(text, source));
  if (line == "-1") return std::optional<std::uint64_t>{};
  return std::optional<std::uint64_t>(TRY(number(line, source, line)));
}

Result<CpuMax> parse_cpu_max(const std::string& text, const std::string& source) {
  const std::string_view line = TRY(only_line(text, source));
  const std::vector<std::string_view> parts = split(line, ' ');
  if (parts.size() != 2) return bad_line(source, "'QUOTA PERIOD' is due", line);
  CpuMax limit;
  if (parts[0] != "max") limit.quota_us = TRY(number(parts[0], source, line));
  limit.period_us = TRY(number(parts[1], source, line));
  if (limit.period_us == 0) return bad_line(source, "the period is 0", line);
  return limit;
}

Result<KeyedCounters> parse_keyed(const std::string& text, const std::string& source,
                                  const std::vector<std::string>& required) {
  KeyedCounters counters;
  for (const std::string_view line : TRY(lines(text, source))) {
    const std::vector<std::string_view> parts = split(line, ' ');
    if (parts.size() != 2 || parts[0].empty()) return bad_line(source, "'KEY NUMBER' is due", line);
    const std::uint64_t value = TRY(number(parts[1], source, line));
    if (!counters.emplace(parts[0], value).second) return bad_line(source, "the key stands twice", line);
  }
  for (const std::string& key : required)
    if (!counters.contains(key)) return bad_file(source, "'" + key + "' is missing");
  return counters;
}

Result<std::vector<std::uint64_t>> parse_numbers(const std::string& text, const std::string& source) {
  std::vector<std::uint64_t> numbers;
  if (text.empty()) return numbers;
  for (const std::string_view line : TRY(lines(text, source))) numbers.push_back(TRY(number(line, source, line)));
  return numbers;
}

Result<std::vector<CgroupMembership>> parse_cgroup_membership(const std::string& text, const std::string& source) {
  std::vector<CgroupMembership> memberships;
  for (const std::string_view line : TRY(lines(text, source))) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos || line.substr(second + 1, 1) != "/")
      return bad_line(source, "'HIERARCHY:CONTROLLERS:/PATH' is due", line);
    const std::uint64_t hierarchy = TRY(number(line.substr(0, first), source, line));
    if (hierarchy > UINT32_MAX) return bad_line(source, "the hierarchy is not below 2^32", line);
    CgroupMembership membership;
    membership.hierarchy = static_cast<std::uint32_t>(hierarchy);
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty() != (hierarchy == 0)) return bad_line(source, "only hierarchy 0 has no controllers", line);
    if (!controllers.empty())
      for (const std::string_view name : split(controllers, ',')) membership.controllers.emplace_back(name);
    membership.path = line.substr(second + 1);
    const auto same = [&](const CgroupMembership& other) { return other.hierarchy == membership.hierarchy; };
    if (std::any_of(memberships.begin(), memberships.end(), same))
      return bad_line(source, "the hierarchy stands twice", line);
    memberships.push_back(std::move(membership));
  }
  return memberships;
}

}  // namespace benchsand
