#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/guest_text.h"
#include "conformance/reports.h"
#include "conformance/tally.h"
#include "oci/record.h"
#include "oci/strict_json.h"
#include "oci/yaml_tree.h"

namespace benchsand::conformance {

using nlohmann::json;

namespace {

constexpr const char* kSchema = "benchsand.conformance/v1";

struct AboutText {
  const char* key;
  std::string SuiteAbout::*member;
};
constexpr AboutText kAboutTexts[] = {{"benchsand", &SuiteAbout::version},
                                     {"cases_sha256", &SuiteAbout::cases_sha256},
                                     {"cgroup", &SuiteAbout::cgroup},
                                     {"created", &SuiteAbout::created},
                                     {"delegate", &SuiteAbout::delegate},
                                     {"delegate_sha256", &SuiteAbout::delegate_sha256},
                                     {"delegate_version", &SuiteAbout::delegate_version},
                                     {"engine", &SuiteAbout::engine},
                                     {"kernel", &SuiteAbout::kernel},
                                     {"probe_sha256", &SuiteAbout::probe_sha256},
                                     {"profile", &SuiteAbout::profile},
                                     {"profile_sha256", &SuiteAbout::profile_sha256}};

struct CaseText {
  const char* key;
  std::string CaseResult::*member;
};
constexpr CaseText kCaseTexts[] = {
    {"asserts", &CaseResult::asserts},   {"attempt", &CaseResult::attempt}, {"control", &CaseResult::control},
    {"expected", &CaseResult::expected}, {"host", &CaseResult::host},       {"id", &CaseResult::id},
    {"inside", &CaseResult::inside},     {"reason", &CaseResult::reason},   {"wall", &CaseResult::wall}};

json text_json(const std::string& bytes) {
  return printable(cut_text(bytes, kLongestText));
}

json about_json(const SuiteAbout& about) {
  json result = {{"duration_us", about.duration_us}};
  for (const auto& field : kAboutTexts) result[field.key] = text_json(about.*field.member);
  return result;
}

json case_json(const CaseResult& result) {
  json row = {{"check", result.check}, {"verdict", to_text(result.verdict)}};
  for (const auto& field : kCaseTexts) row[field.key] = text_json(result.*field.member);
  return row;
}

json counts_json(const SuiteReport& report) {
  json counts = json::object();
  for (const auto verdict : kCaseVerdicts) counts[to_text(verdict)] = count(report, verdict);
  return counts;
}

json without_digest(const SuiteReport& report) {
  json cases = json::array();
  for (const auto& result : report.cases) cases.push_back(case_json(result));
  return {{"schema", kSchema},
          {"about", about_json(report.about)},
          {"cases", cases},
          {"counts", counts_json(report)},
          {"passes", passes(report)}};
}

// Reads one report; every message names the place.
class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  Result<SuiteReport> read(const json& document) const {
    if (!document.is_object()) return bad("", "it is no object");
    const json schema = document.value("schema", json());
    if (schema != kSchema)
      return bad("/schema", schema.is_null() ? "is missing" : schema.dump() + " is not " + in_quotes(kSchema));
    TRY_VOID(only(document, "", {"schema", "about", "cases", "counts", "passes", "digest"}));
    if (!digest_matches(document)) return bad("/digest", "is not that of the report: it was changed");
    SuiteReport report;
    report.about = TRY(about(document.at("about")));
    if (!document.at("cases").is_array()) return bad("/cases", "is no list");
    for (const json& row : document.at("cases"))
      report.cases.push_back(TRY(one_case(row, "/cases/" + std::to_string(report.cases.size()))));
    TRY_VOID(unique(report));
    if (document.at("counts") != counts_json(report)) return bad("/counts", "is not what the cases come to");
    if (document.at("passes") != passes(report)) return bad("/passes", "is not what the cases come to");
    return report;
  }

 private:
  std::unexpected<Error> bad(const std::string& place, const std::string& why) const {
    return usage("read the report " + name_ + ": " + (place.empty() ? "" : in_quotes(place) + " ") + why);
  }

  // Exactly these keys.
  Result<void> only(const json& object, const std::string& place, const std::set<std::string>& keys) const {
    if (!object.is_object()) return bad(place, "is no object");
    for (const auto& key : keys)
      if (!object.contains(key)) return bad(place + "/" + key, "is missing");
    for (const auto& [key, value] : object.items())
      if (!keys.contains(key)) return bad(place + "/" + pointer_token(key), "is no key of a report");
    return {};
  }

  // The inverse of printable().
  Result<std::string> text(const json& value, const std::string& place) const {
    if (!value.is_string()) return bad(place, "is no text");
    const std::string& shown = value.get_ref<const std::string&>();
    std::string bytes;
    for (std::size_t at = 0; at < shown.size(); ++at) {
      if (shown[at] != '\\') {
        bytes += shown[at];
      } else if (shown.compare(at, 2, "\\\\") == 0) {
        bytes += shown[++at];
      } else {
        unsigned byte = 0;
        const char* const digits = shown.data() + at + 2;
        const bool whole = shown.size() - at >= 4 && shown[at + 1] == 'x';
        if (!whole || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2)
          return bad(place, "has a backslash that begins no \\\\ and no \\xNN");
        bytes += static_cast<char>(byte);
        at += 3;
      }
    }
    return bytes;
  }

  Result<std::uint64_t> number(const json& value, const std::string& place) const {
    if (!value.is_number_unsigned()) return bad(place, "is no whole number");
    return value.get<std::uint64_t>();
  }

  Result<SuiteAbout> about(const json& object) const {
    std::set<std::string> keys = {"duration_us"};
    for (const auto& field : kAboutTexts) keys.insert(field.key);
    TRY_VOID(only(object, "/about", keys));
    SuiteAbout about;
    about.duration_us = TRY(number(object.at("duration_us"), "/about/duration_us"));
    for (const auto& field : kAboutTexts)
      about.*field.member = TRY(text(object.at(field.key), std::string("/about/") + field.key));
    return about;
  }

  Result<CaseResult> one_case(const json& object, const std::string& place) const {
    std::set<std::string> keys = {"check", "verdict"};
    for (const auto& field : kCaseTexts) keys.insert(field.key);
    TRY_VOID(only(object, place, keys));
    CaseResult result;
    const std::uint64_t check = TRY(number(object.at("check"), place + "/check"));
    if (check > kChecks) return bad(place + "/check", "is none of 0 to " + std::to_string(kChecks));
    result.check = static_cast<unsigned>(check);
    for (const auto& field : kCaseTexts)
      result.*field.member = TRY(text(object.at(field.key), place + "/" + field.key));
    const bool plain = result.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string::npos;
    if (result.id.empty() || !plain) return bad(place + "/id", "is no name of a-z, 0-9, \".\" and \"-\"");
    result.verdict = TRY(verdict(object.at("verdict"), place + "/verdict"));
    return result;
  }

  Result<CaseVerdict> verdict(const json& value, const std::string& place) const {
    for (const auto known : kCaseVerdicts)
      if (value == to_text(known)) return known;
    return bad(place, "is no verdict");
  }

  Result<void> unique(const SuiteReport& report) const {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < report.cases.size(); ++i)
      if (!seen.insert(report.cases[i].id).second)
        return bad("/cases/" + std::to_string(i) + "/id", in_quotes(report.cases[i].id) + " stands twice");
    return {};
  }

  std::string name_;
};

}  // namespace

std::string report_json(const SuiteReport& report) {
  json document = without_digest(report);
  document["digest"] = record_digest(document);
  std::string text = document.dump(2, ' ', true) + "\n";
  // A runner of GitHub takes "##[" for a command wherever it stands in a line of a log. Only within a text can it stand here.
  for (auto at = text.find("##["); at != std::string::npos; at = text.find("##[", at))
    text.replace(at, 2, "\\u0023\\u0023");
  return text;
}

Result<SuiteReport> parse_report(const std::string& text, const std::string& name) {
  return Reader(name).read(TRY(parse_strict_json(text, name)));
}

}  // namespace benchsand::conformance
