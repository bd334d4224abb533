// The files of one network namespace, under /proc/PID/net.
#include <algorithm>

#include "oci/kernel_files.h"
#include "oci/kernel_text.h"

namespace benchsand {

using namespace kernel_text;

namespace {

constexpr std::size_t kDevColumns = 16;
constexpr std::size_t kTxBytes = 8;
constexpr std::size_t kRouteColumns = 11;
constexpr std::size_t kIpv6RouteColumns = 10;

Result<Link> parse_link(std::string_view line, const std::string& source) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bad_line(source, "'NAME: NUMBERS' is due", line);
  Link link;
  link.name = trim(line.substr(0, colon));
  if (link.name.empty()) return bad_line(source, "the link has no name", line);
  std::vector<std::uint64_t> columns;
  for (const std::string_view word : words(line.substr(colon + 1))) columns.push_back(TRY(number(word, source, line)));
  if (columns.size() != kDevColumns)
    return bad_line(source, "16 numbers are due, there are " + std::to_string(columns.size()), line);
  link.rx_bytes = columns[0];
  link.tx_bytes = columns[kTxBytes];
  return link;
}

Result<void> check_hex(std::string_view word, std::size_t digits, const std::string& source, std::string_view line) {
  if (word.size() != digits || word.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
    return bad_line(source, std::to_string(digits) + " hexadecimal digits are due for the destination", line);
  return {};
}

// One protocol of /proc/net/snmp. Values may be -1, so they stay text until one is asked for.
struct SnmpPair {
  std::vector<std::string_view> names, values;
};

Result<SnmpPair> find_snmp(const std::vector<std::string_view>& all, const std::string& source,
                           const std::string& label) {
  std::vector<std::string_view> found;
  for (const std::string_view line : all)
    if (line.starts_with(label + " ")) found.push_back(line);
  if (found.size() != 2)
    return bad_file(source, "two lines '" + label + "' are due, there are " + std::to_string(found.size()));
  SnmpPair pair{split(found[0], ' '), split(found[1], ' ')};
  if (pair.names.size() != pair.values.size())
    return bad_line(source, "there are " + std::to_string(pair.names.size() - 1) + " names for the numbers of",
                    found[1]);
  return pair;
}

}  // namespace

Result<std::vector<Link>> parse_net_dev(const std::string& text, const std::string& source) {
  const std::vector<std::string_view> all = TRY(lines(text, source));
  if (all.size() < 2 || !all[0].starts_with("Inter-|") || !all[1].starts_with(" face |"))
    return bad_line(source, "the two header lines are unknown", all.front());
  std::vector<Link> links;
  for (std::size_t i = 2; i < all.size(); ++i) {
    Link link = TRY(parse_link(all[i], source));
    const auto same = [&](const Link& other) { return other.name == link.name; };
    if (std::any_of(links.begin(), links.end(), same)) return bad_line(source, "the link stands twice", all[i]);
    links.push_back(std::move(link));
  }
  return links;
}

Result<std::vector<std::string>> parse_ipv4_routes(const std::string& text, const std::string& source) {
  const std::vector<std::string_view> all = TRY(lines(text, source));
  if (!all.front().starts_with("Iface\tDestination\tGateway"))
    return bad_line(source, "the header is unknown", all.front());
  std::vector<std::string> interfaces;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const std::vector<std::string_view> columns = words(all[i]);
    if (columns.size() != kRouteColumns)
      return bad_line(source, "11 columns are due, there are " + std::to_string(columns.size()), all[i]);
    TRY_VOID(check_hex(columns[1], 8, source, all[i]));
    interfaces.emplace_back(columns.front());
  }
  return interfaces;
}

Result<std::vector<std::string>> parse_ipv6_routes(const std::string& text, const std::string& source) {
  if (text.empty()) return std::vector<std::string>{};
  std::vector<std::string> interfaces;
  for (const std::string_view line : TRY(lines(text, source))) {
    const std::vector<std::string_view> columns = words(line);
    if (columns.size() != kIpv6RouteColumns)
      return bad_line(source, "10 columns are due, there are " + std::to_string(columns.size()), line);
    TRY_VOID(check_hex(columns[0], 32, source, line));
    interfaces.emplace_back(columns.back());
  }
  return interfaces;
}

Result<std::uint64_t> parse_snmp(const std::string& text, const std::string& source, const std::string& protocol,
                                 const std::string& counter) {
  const std::vector<std::string_view> all = TRY(lines(text, source));
  const SnmpPair pair = TRY(find_snmp(all, source, protocol + ":"));
  std::optional<std::uint64_t> value;
  for (std::size_t i = 1; i < pair.names.size(); ++i) {
    if (pair.names[i] != counter) continue;
    if (value) return bad_file(source, "'" + counter + "' of " + protocol + " stands twice");
    value = TRY(number(pair.values[i], source, protocol + " " + counter));
  }
  if (!value) return bad_file(source, "'" + counter + "' of " + protocol + " is missing");
  return *value;
}

Result<std::uint64_t> parse_snmp6(const std::string& text, const std::string& source, const std::string& counter) {
  std::optional<std::uint64_t> value;
  for (const std::string_view line : TRY(lines(text, source))) {
    const std::vector<std::string_view> columns = words(line);
    if (columns.size() != 2) return bad_line(source, "'NAME NUMBER' is due", line);
    const std::uint64_t seen = TRY(number(columns[1], source, line));
    if (columns[0] != counter) continue;
    if (value) return bad_line(source, "the key stands twice", line);
    value = seen;
  }
  if (!value) return bad_file(source, "'" + counter + "' is missing");
  return *value;
}

}  // namespace benchsand
