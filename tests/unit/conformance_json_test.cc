#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "conformance/guest_text.h"
#include "conformance/reports.h"
#include "oci/record.h"
#include "sample_suite.h"

using namespace benchsand;
using namespace benchsand::conformance;
using nlohmann::json;

namespace suite = sample::suite;

namespace {

// The report as JSON, changed, and given a digest of its own again.
std::string changed(const std::function<void(json&)>& change, const SuiteReport& report = suite::every_verdict()) {
  json document = json::parse(report_json(report));
  change(document);
  document["digest"] = record_digest(document);
  return document.dump();
}

std::string refusal(const std::string& text) {
  const auto report = parse_report(text, "base.json");
  if (report) return "it was accepted";
  CHECK(report.error().kind == Error::Kind::usage);
  return report.message();
}

}  // namespace

TEST_CASE("a report as JSON: schema, counts, keys in order, a digest as a record has it") {
  const std::string text = report_json(suite::every_verdict());
  const json document = json::parse(text);
  CHECK(document.at("schema") == "benchsand.conformance/v1");
  CHECK(document.at("passes") == false);
  CHECK(document.at("counts") == json{{"REFUSED", 1},
                                      {"INAPPLICABLE", 1},
                                      {"CONFIRMED-LIMIT", 1},
                                      {"LIMIT-GONE", 1},
                                      {"VACUOUS", 1},
                                      {"UNKNOWN", 1},
                                      {"ESCAPED", 1}});
  CHECK(digest_matches(document));
  CHECK(text == document.dump(2, ' ', true) + "\n");  // sorted, ASCII
  CHECK(document.at("about").at("kernel") == "6.18.44");
  CHECK(document.at("cases").at(6).at("verdict") == "ESCAPED");
  CHECK(json::parse(report_json(suite::good())).at("passes") == true);
  CHECK(json::parse(report_json(suite::report({}))).at("passes") == false);
}

TEST_CASE("a report comes back from its JSON as it was") {
  for (const auto& report : {suite::every_verdict(), suite::good(), suite::report({})}) {
    const auto back = parse_report(report_json(report), "base.json");
    REQUIRE(back);
    CHECK(report_json(*back) == report_json(report));
    CHECK(back->about.duration_us == report.about.duration_us);
    CHECK(back->cases.size() == report.cases.size());
    CHECK(passes(*back) == passes(report));
  }
}

TEST_CASE("hostile text comes back from JSON byte for byte, but for what was cut") {
  for (const auto verdict : kCaseVerdicts) {
    const auto report = suite::hostile(verdict);
    const std::string text = report_json(report);
    CHECK(text.size() < std::size_t{1} << 20);
    CHECK(text.find("##[") == std::string::npos);
    for (const auto& line : sample::lines_of(text)) {
      CHECK(sample::is_plain(line));
      CHECK(line.find("::") != line.find_first_not_of(' '));
    }
    const auto back = parse_report(text, "base.json");
    REQUIRE(back);
    for (std::size_t i = 0; i < report.cases.size(); ++i) {
      CHECK(back->cases[i].inside == cut_text(report.cases[i].inside, kLongestText));
      CHECK(back->cases[i].verdict == verdict);
    }
    CHECK(report_json(*back) == text);
  }
}

TEST_CASE("every key of a report must be there") {
  const std::string at = "read the report base.json: ";
  for (const char* key : {"about", "cases", "counts", "passes", "schema"})
    CHECK(refusal(changed([&](json& d) { d.erase(key); })) == at + "\"/" + key + "\" is missing");
  const json document = json::parse(report_json(suite::every_verdict()));
  CHECK(document.at("about").size() == 13);
  for (const auto& [key, value] : document.at("about").items())
    CHECK(refusal(changed([&](json& d) { d["about"].erase(key); })) == at + "\"/about/" + key + "\" is missing");
  CHECK(document.at("cases").at(2).size() == 11);
  for (const auto& [key, value] : document.at("cases").at(2).items())
    CHECK(refusal(changed([&](json& d) { d["cases"][2].erase(key); })) == at + "\"/cases/2/" + key + "\" is missing");
  json without = document;
  without.erase("digest");
  CHECK(refusal(without.dump()) == at + "\"/digest\" is missing");
  CHECK(refusal(changed([](json& d) { d["about"]["kernel"] = nullptr; })) ==
        at + "\"/digest\" is not that of the report: it was changed");
}

TEST_CASE("what is no report is refused, and where it is not") {
  const std::string at = "read the report base.json: ";
  const std::pair<std::function<void(json&)>, std::string> rows[] = {
      {[](json& d) { d["schema"] = "benchsand.conformance/v2"; },
       "\"/schema\" \"benchsand.conformance/v2\" is not \"benchsand.conformance/v1\""},
      {[](json& d) { d["more"] = 1; }, "\"/more\" is no key of a report"},
      {[](json& d) { d["about"]["a/b"] = "x"; }, "\"/about/a~1b\" is no key of a report"},
      {[](json& d) { d["cases"][0]["more"] = "x"; }, "\"/cases/0/more\" is no key of a report"},
      {[](json& d) { d["about"] = "x"; }, "\"/about\" is no object"},
      {[](json& d) { d["cases"] = json::object(); }, "\"/cases\" is no list"},
      {[](json& d) { d["cases"][1] = 1; }, "\"/cases/1\" is no object"},
      {[](json& d) { d["about"]["kernel"] = 6; }, "\"/about/kernel\" is no text"},
      {[](json& d) { d["about"]["duration_us"] = 1.5; }, "\"/about/duration_us\" is no whole number"},
      {[](json& d) { d["about"]["duration_us"] = -1; }, "\"/about/duration_us\" is no whole number"},
      {[](json& d) { d["cases"][1]["check"] = "1"; }, "\"/cases/1/check\" is no whole number"},
      {[](json& d) { d["cases"][1]["check"] = 11; }, "\"/cases/1/check\" is none of 0 to 10"},
      {[](json& d) { d["cases"][1]["verdict"] = "refused"; }, "\"/cases/1/verdict\" is no verdict"},
      {[](json& d) { d["cases"][1]["verdict"] = 0; }, "\"/cases/1/verdict\" is no verdict"},
      {[](json& d) { d["cases"][1]["id"] = ""; }, "\"/cases/1/id\" is no name of a-z, 0-9, \".\" and \"-\""},
      {[](json& d) { d["cases"][1]["id"] = "A\nb"; }, "\"/cases/1/id\" is no name of a-z, 0-9, \".\" and \"-\""},
      {[](json& d) { d["cases"][1]["id"] = "case.0"; }, "\"/cases/1/id\" \"case.0\" stands twice"},
      {[](json& d) { d["cases"][1]["inside"] = "\\q"; },
       "\"/cases/1/inside\" has a backslash that begins no \\\\ and no \\xNN"},
      {[](json& d) { d["cases"][1]["inside"] = "\\x1"; },
       "\"/cases/1/inside\" has a backslash that begins no \\\\ and no \\xNN"},
      {[](json& d) { d["cases"][1]["inside"] = "\\xg1"; },
       "\"/cases/1/inside\" has a backslash that begins no \\\\ and no \\xNN"},
      {[](json& d) { d["cases"][1]["inside"] = "\\"; },
       "\"/cases/1/inside\" has a backslash that begins no \\\\ and no \\xNN"},
      {[](json& d) { d["cases"].erase(6); }, "\"/counts\" is not what the cases come to"},
      {[](json& d) { d["counts"]["REFUSED"] = 2; }, "\"/counts\" is not what the cases come to"},
      {[](json& d) { d["passes"] = true; }, "\"/passes\" is not what the cases come to"},
  };
  for (const auto& [change, why] : rows) CHECK(refusal(changed(change)) == at + why);
}

TEST_CASE("a report that was changed after it was written is refused") {
  std::string text = report_json(suite::every_verdict());
  const auto place = text.find("\"6.18.44\"");
  REQUIRE(place != std::string::npos);
  text.replace(place, 9, "\"6.18.45\"");
  CHECK(refusal(text) == "read the report base.json: \"/digest\" is not that of the report: it was changed");
  CHECK(refusal("[]") == "read the report base.json: it is no object");
  CHECK(refusal("") == "base.json: no JSON from byte 1 on");
  CHECK(refusal("{\"a\": 1, \"a\": 2}") == "base.json: \"/a\": the key stands twice");
  std::string cut = report_json(suite::good());
  CHECK(refusal(cut.substr(0, cut.size() / 2)).find("no JSON from byte ") != std::string::npos);
}

TEST_CASE("formats are found by name") {
  for (const char* name : {"json", "junit", "tap", "markdown", "sarif", "github", "metrics"}) {
    const auto format = find_report_format(name);
    REQUIRE(format);
    CHECK(std::string(format->name) == name);
    CHECK_FALSE(format->write(suite::every_verdict()).empty());
  }
  const auto none = find_report_format("xml");
  REQUIRE_FALSE(none);
  CHECK(none.message() == "format \"xml\": there are table, json, junit, tap, markdown, sarif, github, metrics");
}
