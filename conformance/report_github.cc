#include <algorithm>
#include <vector>

#include "conformance/guest_text.h"
#include "conformance/reports.h"
#include "conformance/tally.h"

namespace benchsand::conformance {

namespace {

std::string escaped(const std::string& text, bool property) {
  std::string result;
  for (const char c : text) {
    if (c == '%')
      result += "%25";
    else if (c == '\r')
      result += "%0D";
    else if (c == '\n')
      result += "%0A";
    else if (property && c == ':')
      result += "%3A";
    else if (property && c == ',')
      result += "%2C";
    else
      result += c;
  }
  return result;
}

// `message` may have line breaks of our own.
std::string error(const std::string& title, const std::string& message) {
  return "::error title=" + escaped(title, true) + "::" + escaped(message, false) + "\n";
}

struct Complaint {
  const CaseResult* worst;
  std::size_t more;  // failed attempts of the same check
};

// One for each of the ten that failed, then one for each further case.
std::vector<Complaint> complaints(const SuiteReport& report) {
  std::vector<Complaint> list;
  for (const auto* result : failures(report)) {
    const auto same = std::find_if(list.begin(), list.end(), [&](const Complaint& one) {
      return result->check != 0 && one.worst->check == result->check;
    });
    if (same != list.end())
      ++same->more;
    else
      list.push_back({result, 0});
  }
  std::stable_partition(list.begin(), list.end(), [](const Complaint& one) { return one.worst->check != 0; });
  return list;
}

std::string annotation(const Complaint& complaint) {
  const CaseResult& result = *complaint.worst;
  std::string message = line_text(result.attempt) + ": " + line_text(result.reason) +
                        "\nexpected: " + line_text(result.expected) + "\ninside: " + line_text(result.inside) +
                        "\nhost: " + line_text(result.host) + "\ncontrol: " + line_text(result.control);
  if (complaint.more > 0) message += "\nfailed attempts of this check besides: " + std::to_string(complaint.more);
  return error(std::string(to_text(result.verdict)) + " " + line_text(name_of(result)), message);
}

}  // namespace

std::string report_annotations(const SuiteReport& report) {
  if (report.cases.empty()) return error("benchsand conformance", kNoAttempt);
  const auto list = complaints(report);
  // What GitHub would hide is counted by the last that it shows.
  const std::size_t shown = list.size() <= kMostAnnotations ? list.size() : kMostAnnotations - 1;
  std::string text;
  if (const std::string whose = whose_walls(report.about); !whose.empty())
    text = "::notice title=not benchsand::" + escaped(line_text(whose), false) + "\n";
  for (std::size_t i = 0; i < shown; ++i) text += annotation(list[i]);
  if (shown < list.size())
    text +=
        error("benchsand conformance", "and " + std::to_string(list.size() - shown) + " more; " + summary_line(report));
  return text;
}

}  // namespace benchsand::conformance
