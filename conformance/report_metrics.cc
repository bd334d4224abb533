#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "conformance/guest_text.h"
#include "conformance/reports.h"
#include "conformance/tally.h"

namespace benchsand::conformance {

namespace {

// node_exporter reads the text format of Prometheus, which has no type `info`, refuses a file with time stamps or with the same
// labels twice, and takes "# EOF", which OpenMetrics wants, for a comment.
std::string family(const char* name, const char* help) {
  return std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " gauge\n";
}

using Labels = std::vector<std::pair<const char*, std::string>>;

std::string sample(const std::string& name, const Labels& labels, const std::string& value) {
  std::string text;
  for (const auto& [key, bytes] : labels) {
    text += (text.empty() ? "{" : ",") + std::string(key) + "=\"";
    for (const char c : ascii_text(bytes, 128)) {
      if (c == '\\' || c == '"') text += '\\';
      text += c;
    }
    text += '"';
  }
  return name + text + (text.empty() ? " " : "} ") + value + "\n";
}

// A name of a case or a wall, so that nothing that a probe tells can make a time series.
std::string bounded(const std::string& name) {
  std::string text;
  for (const char c : name.substr(0, 64)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    text += plain ? c : '_';
  }
  return text;
}

std::string case_samples(const SuiteReport& report) {
  std::map<std::string, bool> samples;  // two that look the same pass only together
  for (const auto& result : report.cases) {
    const Labels labels = {
        {"id", bounded(result.id)}, {"wall", bounded(result.wall)}, {"check", std::to_string(result.check)}};
    const std::string head = sample("benchsand_conformance_case", labels, "");
    const auto [at, added] = samples.emplace(head.substr(0, head.size() - 1), passes(result.verdict));
    if (!added) at->second = at->second && passes(result.verdict);
  }
  std::string text;
  for (const auto& [head, good] : samples) text += head + (good ? "1\n" : "0\n");
  return text;
}

std::optional<std::int64_t> number_in(const std::string& text, std::size_t at, std::size_t length) {
  std::int64_t number = 0;
  if (text.size() < at + length) return std::nullopt;
  const char* const end = text.data() + at + length;
  const auto [stop, error] = std::from_chars(text.data() + at, end, number);
  if (error != std::errc{} || stop != end || number < 0) return std::nullopt;
  return number;
}

// Days from 1970-01-01 in the Gregorian calendar. A year begins in March here, so that the odd day is its last.
std::int64_t days_to(std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
  return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719'468;
}

// "2026-11-30T12:00:00Z", as a report has it.
std::optional<std::int64_t> unix_seconds(const std::string& created) {
  if (!created.ends_with('Z') || created.size() < 20) return std::nullopt;
  if (created[4] != '-' || created[7] != '-' || created[10] != 'T' || created[13] != ':' || created[16] != ':')
    return std::nullopt;
  std::int64_t parts[6] = {};
  constexpr std::pair<std::size_t, std::size_t> kPlaces[] = {{0, 4}, {5, 2}, {8, 2}, {11, 2}, {14, 2}, {17, 2}};
  for (std::size_t i = 0; i < 6; ++i) {
    const auto part = number_in(created, kPlaces[i].first, kPlaces[i].second);
    if (!part) return std::nullopt;
    parts[i] = *part;
  }
  if (parts[1] < 1 || parts[1] > 12 || parts[2] < 1) return std::nullopt;
  return ((days_to(parts[0], parts[1], parts[2]) * 24 + parts[3]) * 60 + parts[4]) * 60 + parts[5];
}

std::string info(const SuiteAbout& about) {
  return sample("benchsand_conformance_info",
                {{"version", about.version},
                 {"engine", about.engine},
                 {"delegate", about.delegate},
                 {"delegate_version", about.delegate_version},
                 {"delegate_sha256", about.delegate_sha256},
                 {"kernel", about.kernel},
                 {"cgroup", about.cgroup},
                 {"profile", about.profile},
                 {"profile_sha256", about.profile_sha256},
                 {"probe_sha256", about.probe_sha256},
                 {"cases_sha256", about.cases_sha256}},
                "1");
}

}  // namespace

std::string report_metrics(const SuiteReport& report) {
  std::string text = family("benchsand_conformance_passed", "1 when attempts were made and each passed.") +
                     sample("benchsand_conformance_passed", {}, passes(report) ? "1" : "0") +
                     family("benchsand_conformance_cases", "Attempts by verdict.");
  for (const auto verdict : kCaseVerdicts)
    text +=
        sample("benchsand_conformance_cases", {{"verdict", to_text(verdict)}}, std::to_string(count(report, verdict)));
  const std::string cases = case_samples(report);
  if (!cases.empty()) text += family("benchsand_conformance_case", "1 when this attempt passed, 0 otherwise.") + cases;
  text += family("benchsand_conformance_info", "What the suite ran on and with; always 1.") + info(report.about);
  text += family("benchsand_conformance_duration_seconds", "How long the suite took.") +
          sample("benchsand_conformance_duration_seconds", {}, in_seconds(report.about.duration_us));
  // Absent rather than wrong: an alert on its age must also be one on its absence.
  if (const auto at = unix_seconds(report.about.created))
    text += family("benchsand_conformance_timestamp_seconds", "When the suite ran, in Unix time.") +
            sample("benchsand_conformance_timestamp_seconds", {}, std::to_string(*at));
  return text + "# EOF\n";
}

}  // namespace benchsand::conformance
