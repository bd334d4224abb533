#include "conformance/report_table.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "conformance/guest_text.h"
#include "conformance/tally.h"
#include "oci/columns.h"
#include "oci/ink.h"

namespace benchsand::conformance {

namespace {

using Row = std::vector<std::string>;

constexpr std::size_t kIndent = 2, kWidestCell = 100, kNarrowestCell = 10;
constexpr std::size_t kNarrowestVerdict = 15;  // CONFIRMED-LIMIT
constexpr std::size_t kNarrowestWithNames = 100;

std::string shortened(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

// What fits beside the others: the widest column gives first.
void fit(std::vector<Row>& rows, std::size_t width) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], std::min(row[i].size(), kWidestCell));
  const std::size_t gaps = kIndent + 2 * (widths.size() - 1);
  const auto can_give = [&](std::size_t& cell) {
    return cell > (&cell == &widths.back() ? kNarrowestVerdict : kNarrowestCell) ? cell : 0;
  };
  while (width > 0 && std::accumulate(widths.begin(), widths.end(), gaps) > width) {
    const auto widest =
        std::max_element(widths.begin(), widths.end(), [&](auto& a, auto& b) { return can_give(a) < can_give(b); });
    if (can_give(*widest) == 0) break;
    --*widest;
  }
  for (auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = shortened(row[i], widths[i]);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));  // an empty last cell leaves its gap behind
    at = end + 1;
  }
  return lines;
}

std::string painted(const Ink& ink, const std::string& line, std::size_t at, CaseVerdict verdict) {
  const std::string word = to_text(verdict);
  if (at == std::string::npos || line.compare(at, word.size(), word) != 0) return line;
  return line.substr(0, at) + (passes(verdict) ? ink.good(word) : ink.bad(word)) + line.substr(at + word.size());
}

// Of a verdict that passes; what failed is told at the end.
std::string with_reason(const CaseResult& result) {
  const std::string word = to_text(result.verdict);
  return passes(result.verdict) && !result.reason.empty() ? word + ": " + ascii_text(result.reason) : word;
}

std::string head(const SuiteAbout& about) {
  const auto digest = [](const std::string& sha256) { return ascii_text(sha256.substr(0, 12)); };
  const auto text = [](const std::string& bytes) { return shortened(ascii_text(bytes), kWidestCell); };
  return columns(
      {{"benchsand",
        text(about.version) + ", " + text(about.created) + ", " + std::to_string(about.duration_us / 1000) + " ms"},
       {"engine", text(about.engine)},
       {"delegate", text(about.delegate) + " " + text(about.delegate_version) +
                        (about.delegate_sha256.empty() ? "" : ", " + digest(about.delegate_sha256))},
       {"host", "Linux " + text(about.kernel) + ", cgroup " + text(about.cgroup)},
       {"profile", text(about.profile) + (about.profile_sha256.empty() ? "" : ", " + digest(about.profile_sha256))},
       {"probe", digest(about.probe_sha256) + ", cases " + digest(about.cases_sha256)}});
}

std::string ten(const SuiteReport& report, std::size_t width, const Ink& ink) {
  const auto results = ten_results(report);
  std::vector<Row> rows;
  for (const auto& [check, attempts, worst] : results) {
    const std::string number = std::to_string(check.number);
    rows.push_back(
        {"check " + std::string(2 - number.size(), ' ') + number, check.title,
         worst ? to_text(worst->verdict) : "not tried",
         worst ? std::to_string(attempts) + (attempts == 1 ? " attempt; " : " attempts; ") + ascii_text(worst->host)
               : ""});
  }
  // Numbers, titles and verdicts are never cut.
  const std::size_t before = columns(rows).find('\n') - rows.front().back().size();
  const std::size_t room = width == 0 ? kWidestCell : std::max(width, before) - before;
  for (auto& row : rows) row.back() = room < kNarrowestCell ? "" : shortened(row.back(), room);
  std::string text;
  std::size_t i = 0;
  for (const auto& line : lines_of(columns(rows))) {
    const CaseResult* worst = results[i++].worst;
    text += (worst ? painted(ink, line, line.find(to_text(worst->verdict)), worst->verdict) : line) + "\n";
  }
  return text;
}

std::string further(const SuiteReport& report, std::size_t width, const Ink& ink) {
  const auto groups = further_by_wall(report);
  if (groups.empty()) return "";
  const bool named = width == 0 || width >= kNarrowestWithNames;
  std::vector<Row> rows = {{"name", "attempt", "expected", "inside", "host", "control", "verdict"}};
  for (const auto& group : groups)
    for (const auto* result : group.cases)
      rows.push_back({ascii_text(result->id), ascii_text(result->attempt), ascii_text(result->expected),
                      ascii_text(result->inside), ascii_text(result->host), ascii_text(result->control),
                      with_reason(*result)});
  if (!named)
    for (auto& row : rows) row.erase(row.begin());
  fit(rows, width);
  // One layout over all walls, so that the columns stand below each other.
  const auto lines = lines_of(columns(rows));
  const std::string indent(kIndent, ' ');
  std::string text = "\n" + indent + lines[0] + "\n";
  std::size_t i = 1;
  for (const auto& group : groups) {
    text += "wall " + ascii_text(group.wall) + "\n";
    for (const auto* result : group.cases) {
      text += indent + painted(ink, lines[i], lines[i].size() - rows[i].back().size(), result->verdict) + "\n";
      ++i;
    }
  }
  return text;
}

constexpr std::size_t kAlike =
    8;  // attempts that nothing is known of, for one reason, from which on they are told together

std::string failed_alike(const std::vector<const CaseResult*>& cases, const Ink& ink) {
  std::string names;
  for (std::size_t i = 0; i < 3; ++i) names += (i == 0 ? "" : ", ") + name_of(*cases[i]);
  return "\n" + ink.bad(to_text(cases.front()->verdict)) + " " + std::to_string(cases.size()) + " attempts\n" +
         columns({{"  names", ascii_text(names) + ", ..."}, {"  reason", ascii_text(cases.front()->reason)}});
}

std::string failed_one(const CaseResult& result, const Ink& ink) {
  return "\n" + ink.bad(to_text(result.verdict)) + " " + ascii_text(name_of(result)) + "\n" +
         columns({{"  attempt", ascii_text(result.attempt)},
                  {"  asserts", ascii_text(result.asserts)},
                  {"  reason", ascii_text(result.reason)},
                  {"  expected", ascii_text(result.expected)},
                  {"  inside", ascii_text(result.inside)},
                  {"  host", ascii_text(result.host)},
                  {"  control", ascii_text(result.control)}});
}

// Every line begins with a word of ours: a line that begins with "::" is a command in a log of GitHub's.
std::string failed(const SuiteReport& report, const Ink& ink) {
  std::map<std::pair<CaseVerdict, std::string>, std::vector<const CaseResult*>> alike;
  for (const auto* result : failures(report)) alike[{result->verdict, result->reason}].push_back(result);
  std::string text;
  for (const auto* result : failures(report)) {
    const auto& others = alike[{result->verdict, result->reason}];
    if (result->verdict != CaseVerdict::unknown || others.size() < kAlike)
      text += failed_one(*result, ink);
    else if (others.front() == result)
      text += failed_alike(others, ink);
  }
  return text;
}

std::string limits_gone(const SuiteReport& report) {
  std::string text;
  for (const auto& result : report.cases)
    if (result.verdict == CaseVerdict::limit_gone)
      text += "notice      the documentation is out of date: " + ascii_text(result.id) + ": " +
              ascii_text(result.attempt) + ": " + ascii_text(result.reason) + "\n";
  return text.empty() ? text : "\n" + text;
}

std::string whose(const SuiteReport& report) {
  const std::string words = whose_walls(report.about);
  return words.empty() ? words : "NOT BENCHSAND  " + ascii_text(words) + "\n";
}

std::string lacks_programs(const SuiteReport& report) {
  return report.lacks_programs ? std::string("\nnotice      ") + kLacksPrograms + "\n" : "";
}

}  // namespace

std::string report_table(const SuiteReport& report, std::size_t width, bool colour) {
  const Ink ink(colour);
  return whose(report) + head(report.about) + "\n" + ten(report, width, ink) + further(report, width, ink) +
         failed(report, ink) + (whose_walls(report.about).empty() ? limits_gone(report) : "") + lacks_programs(report) +
         "\n" + whose(report) + summary_line(report) + "\n" +
         (passes(report) ? ink.good("PASSED") : ink.bad("FAILED")) + "\n";
}

}  // namespace benchsand::conformance
