#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "conformance/guest_text.h"
#include "conformance/reports.h"
#include "sample_suite.h"

using namespace benchsand::conformance;
using nlohmann::json;
using sample::count_of;
using sample::lines_of;

namespace suite = sample::suite;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

SuiteReport failing(std::size_t cases, unsigned check = 0) {
  std::vector<CaseResult> list;
  for (std::size_t i = 0; i < cases; ++i)
    list.push_back(suite::one("case." + std::to_string(i), CaseVerdict::escaped, check));
  return suite::report(std::move(list));
}

// A cell of a row of the Markdown is between two of these.
std::size_t bars(const std::string& line) {
  return count_of(line, "|");
}

}  // namespace

TEST_CASE("every format: hostile text is no command of a log, is UTF-8 without anything hidden, and is bounded") {
  for (const auto verdict : kCaseVerdicts)
    for (const auto& format : report_formats()) {
      const std::string text = format.write(suite::hostile(verdict));
      CAPTURE(format.name);
      CHECK(text.size() < 1'500'000);
      CHECK_FALSE(has(text, "##["));
      for (const auto& line : lines_of(text)) {
        const auto start = line.find_first_not_of(" \t");
        const bool command = start != std::string::npos && line.compare(start, 2, "::") == 0;
        CHECK(command == (command && std::string(format.name) == "github" && line.starts_with("::error title=")));
        CHECK(sample::is_all_shown(line));
      }
      if (!text.empty()) CHECK(text.back() == '\n');
    }
}

TEST_CASE("no format says that an empty report passes") {
  const auto empty = suite::report({});
  CHECK(has(report_junit(empty), "tests=\"1\" failures=\"0\" errors=\"1\""));
  CHECK(has(report_junit(empty), "<error message=\"no attempt was made\""));
  CHECK(report_tap(empty) == "TAP version 14\n1..1\nnot ok 1 - UNKNOWN suite: no attempt was made\n");
  CHECK(has(report_markdown(empty), "# benchsand conformance: **FAILED**\n\nno attempt was made."));
  CHECK(json::parse(report_sarif(empty)).at("runs").at(0).at("results").size() == 1);
  CHECK(report_annotations(empty) == "::error title=benchsand conformance::no attempt was made\n");
  CHECK(has(report_metrics(empty), "\nbenchsand_conformance_passed 0\n"));
}

TEST_CASE("JUnit: a failure for what did not stand, an error for what nobody could judge, nothing skipped") {
  const std::string text = report_junit(suite::every_verdict());
  CHECK(has(text, "tests=\"7\" failures=\"2\" errors=\"1\" skipped=\"0\" time=\"41.200000\""));
  CHECK(count_of(text, "<testcase ") == 7);
  CHECK(count_of(text, "<failure ") == 2);
  CHECK(count_of(text, "<error ") == 1);
  CHECK_FALSE(has(text, "<skipped"));
  CHECK(has(text, "<failure message=\"why ESCAPED\" type=\"ESCAPED\">"));
  CHECK(has(text, "<failure message=\"why VACUOUS\" type=\"VACUOUS\">"));
  CHECK(has(text, "<error message=\"why UNKNOWN\" type=\"UNKNOWN\">"));
  CHECK(count_of(text, "<property name=\"warning\"") == 1);
  CHECK(has(text, "<property name=\"reason\" value=\"why LIMIT-GONE\"/>"));
  CHECK(has(text, "<property name=\"reason\" value=\"why INAPPLICABLE\"/>"));
  CHECK(has(text, "<property name=\"kernel\" value=\"6.18.44\"/>"));
  CHECK(has(text, "timestamp=\"2026-11-30T12:34:56Z\""));
}

TEST_CASE("JUnit: hostile text makes no element") {
  for (const auto verdict : kCaseVerdicts) {
    const std::size_t cases = suite::hostile_texts().size();
    const std::string text = report_junit(suite::hostile(verdict));
    CHECK(count_of(text, "<testcase") == cases);
    CHECK(count_of(text, "</testcase") == cases);
    const std::size_t failed = passes(verdict) ? 0 : cases;
    CHECK(count_of(text, "</failure>") + count_of(text, "</error>") == failed);
    CHECK(count_of(text, "<script") == 0);
  }
}

TEST_CASE("TAP: the plan first, a point for each case, no directive") {
  const std::string text = report_tap(suite::every_verdict());
  const auto lines = lines_of(text);
  CHECK(lines[0] == "TAP version 14");
  CHECK(lines[1] == "1..7");
  CHECK(lines[2] == "ok 1 - REFUSED case.0: make a BPF map");
  CHECK(has(text, "\nok 2 - INAPPLICABLE case.1: make a BPF map\n  ---\n"));
  CHECK(has(text, "\nok 4 - LIMIT-GONE case.3: make a BPF map\n"));
  CHECK(has(text,
            "\nnot ok 7 - ESCAPED case.6: make a BPF map\n  ---\n  verdict: \"ESCAPED\"\n  reason: \"why ESCAPED\"\n"));
  CHECK(count_of(text, "\nnot ok ") == 3);
  CHECK(count_of(text, "\n  ---\n") == 6);
  CHECK(count_of(text, "\n  ...\n") == 6);
}

TEST_CASE("TAP: hostile text makes no point, no plan and no directive") {
  for (const auto verdict : kCaseVerdicts) {
    const auto report = suite::hostile(verdict);
    std::size_t good = 0, bad = 0;
    for (const auto& line : lines_of(report_tap(report))) {
      good += line.starts_with("ok ");
      bad += line.starts_with("not ok ");
      CHECK_FALSE(line.starts_with("Bail out!"));
      if (line.starts_with(" ")) continue;
      // A directive begins with a # that no backslash stands before.
      for (std::size_t at = 0; at < line.size(); ++at) {
        if (line[at] == '\\')
          ++at;
        else
          CHECK(line[at] != '#');
      }
    }
    CHECK(good == (passes(verdict) ? report.cases.size() : 0));
    CHECK(bad == (passes(verdict) ? 0 : report.cases.size()));
  }
}

TEST_CASE("Markdown: failures first, then the ten, then the walls") {
  const std::string text = report_markdown(suite::every_verdict());
  CHECK(text.starts_with("# benchsand conformance: **FAILED**\n\n7 attempts: 1 REFUSED,"));
  const auto failures = text.find("\n## Failures\n"), ten = text.find("\n## The ten checks\n"),
             wall = text.find("\n## Wall syscalls\n");
  CHECK(failures < ten);
  CHECK(ten < wall);
  CHECK(wall != std::string::npos);
  CHECK(has(text,
            "| case.6 | **ESCAPED** | `why ESCAPED` | EPERM by seccomp | `ok` | `ledger: bpf EPERM 1 of 1` | `without "
            "seccomp: ok` |"));
  CHECK(has(text, "| 4 | the thirty-third process | 0 | not tried |  |\n"));
  CHECK(has(report_markdown(suite::good()),
            "| 4 | the thirty-third process | 1 | REFUSED | `ledger: bpf EPERM 1 of 1` |\n"));
  CHECK_FALSE(has(report_markdown(suite::good()), "## Failures"));
  auto lacking = suite::good();
  CHECK_FALSE(has(report_markdown(lacking), "--programs"));
  lacking.lacks_programs = true;
  CHECK(has(report_markdown(lacking), "\n\ncurl, git, ssh, pip and other ordinary programs were not attempted: "));
  CHECK_FALSE(has(text, "Cut:"));
}

TEST_CASE("Markdown: hostile text stays in its cell") {
  CHECK(markdown_code("a|b`c\\d") == "`a\\x7cb\\x60c\\\\d`");
  CHECK(markdown_code("  ") == "`\\x20`");
  CHECK(markdown_code("").empty());
  CHECK(markdown_prose("www.a.b 1.8.1") == "www&#46;a.b 1.8.1");
  CHECK(markdown_prose("a|b*c@d<e") == "a&#124;b&#42;c&#92;x40d&#60;e");
  for (const auto verdict : kCaseVerdicts) {
    std::size_t rows = 0;
    for (const auto& line : lines_of(report_markdown(suite::hostile(verdict)))) {
      if (!line.starts_with("|")) continue;
      ++rows;
      CHECK((bars(line) == 8 || bars(line) == 6 || bars(line) == 7));
      CHECK(count_of(line, "`") % 2 == 0);
    }
    CHECK(rows >= 12);
  }
}

TEST_CASE("Markdown: what does not fit is counted, and failures are what stays") {
  auto report = failing(3);
  for (int i = 0; i < 5000; ++i) {
    auto one = suite::one("good." + std::to_string(i), CaseVerdict::refused);
    one.host = std::string(1000, 'h');
    report.cases.push_back(one);
  }
  const std::string text = report_markdown(report);
  CHECK(text.size() <= std::size_t{900} << 10);
  CHECK(text.size() > std::size_t{800} << 10);
  CHECK(has(text, "| case.2 | **ESCAPED** |"));
  const std::size_t shown = count_of(text, "\n| make a BPF map |");
  CHECK(text.ends_with("\n**Cut: " + std::to_string(5003 - shown) + " more rows; the JSON report has them all.**\n"));
  for (const std::size_t most : {0u, 100u, 300u, 2000u}) {
    const std::string cut = report_markdown(report, most);
    CHECK(cut.size() <= std::max<std::size_t>(most, 200));
    CHECK(has(cut, "**Cut: "));
  }
}

TEST_CASE("SARIF: failures only, each with what GitHub asks for") {
  const json log = json::parse(report_sarif(suite::every_verdict()));
  CHECK(log.at("version") == "2.1.0");
  CHECK(log.contains("$schema"));
  const json& run = log.at("runs").at(0);
  const json& rules = run.at("tool").at("driver").at("rules");
  REQUIRE(run.at("results").size() == 3);
  CHECK(rules.size() == 3);
  CHECK(run.at("invocations").at(0).at("executionSuccessful") == false);
  for (const json& result : run.at("results")) {
    CHECK(result.at("kind") == "fail");
    CHECK(result.at("level") == "error");
    CHECK(rules.at(result.at("ruleIndex").get<std::size_t>()).at("id") == result.at("ruleId"));
    CHECK(result.at("locations").at(0).at("physicalLocation").at("artifactLocation").contains("uri"));
    CHECK(result.at("partialFingerprints").size() == 1);
  }
  CHECK(run.at("results").at(0).at("ruleId") == "case.6");
  CHECK(has(run.at("results").at(0).at("message").at("text"),
            "ESCAPED: make a BPF map: why ESCAPED (expected EPERM by seccomp; inside ok;"));
  const json good = json::parse(report_sarif(suite::good())).at("runs").at(0);
  CHECK(good.at("results").empty());
  CHECK(good.at("invocations").at(0).at("executionSuccessful") == true);
}

TEST_CASE("SARIF: no more results than GitHub takes, and that is said") {
  const json run = json::parse(report_sarif(failing(5003))).at("runs").at(0);
  CHECK(run.at("results").size() == 5000);
  CHECK(run.at("invocations").at(0).at("toolExecutionNotifications").at(0).at("message").at("text") ==
        "3 further failures were cut, at most 5000 are shown");
  CHECK_FALSE(json::parse(report_sarif(failing(5000)))
                  .at("runs")
                  .at(0)
                  .at("invocations")
                  .at(0)
                  .contains("toolExecutionNotifications"));
}

TEST_CASE("annotations: one for a failed check, one for each further case, none for what passes") {
  CHECK(report_annotations(suite::good()).empty());
  const std::string text = report_annotations(suite::every_verdict());
  CHECK(lines_of(text).size() == 3);
  CHECK(text.starts_with(
      "::error title=ESCAPED case.6::make a BPF map: why ESCAPED%0Aexpected: EPERM by seccomp%0Ainside: ok%0A"));
  const std::string check = report_annotations(failing(7, 4));
  CHECK(lines_of(check).size() == 1);
  CHECK(check.starts_with("::error title=ESCAPED check 4%2C the thirty-third process%3A case.0::"));
  CHECK(has(check, "%0Afailed attempts of this check besides: 6\n"));
}

TEST_CASE("annotations: at most ten, the ten checks first, the last counts the rest") {
  CHECK(lines_of(report_annotations(failing(10))).size() == 10);
  auto report = failing(30);
  report.cases.push_back(suite::one("ten.2", CaseVerdict::vacuous, 2));
  const auto lines = lines_of(report_annotations(report));
  REQUIRE(lines.size() == 10);
  CHECK(lines[0].starts_with("::error title=VACUOUS check 2%2C open a connection out%3A ten.2::"));
  CHECK(lines[9] == "::error title=benchsand conformance::and 22 more; 31 attempts: 1 VACUOUS, 30 ESCAPED");
}

TEST_CASE("annotations: hostile text ends neither the title nor the message") {
  for (const auto& line : lines_of(report_annotations(suite::hostile(CaseVerdict::escaped)))) {
    CHECK(line.starts_with("::error title="));
    const auto message = line.find("::", 2);
    REQUIRE(message != std::string::npos);
    const std::string title = line.substr(14, message - 14);
    CHECK(title.find_first_of(":,") == std::string::npos);
    for (std::size_t at = line.find('%'); at != std::string::npos; at = line.find('%', at + 1))
      CHECK((line.compare(at, 3, "%25") == 0 || line.compare(at, 3, "%0A") == 0 || line.compare(at, 3, "%3A") == 0 ||
             line.compare(at, 3, "%2C") == 0));
  }
}

TEST_CASE("metrics: what node_exporter takes") {
  const std::string text = report_metrics(suite::every_verdict());
  CHECK(text.ends_with("\n# EOF\n"));
  CHECK(has(text, "# TYPE benchsand_conformance_passed gauge\nbenchsand_conformance_passed 0\n"));
  CHECK(has(text, "\nbenchsand_conformance_cases{verdict=\"ESCAPED\"} 1\n"));
  CHECK(has(text, "\nbenchsand_conformance_case{id=\"case.6\",wall=\"syscalls\",check=\"0\"} 0\n"));
  CHECK(has(text, "\nbenchsand_conformance_case{id=\"case.3\",wall=\"syscalls\",check=\"0\"} 1\n"));
  CHECK(has(text, "\nbenchsand_conformance_info{version=\"0.1.0\",engine=\"crun\","));
  CHECK(has(text, "\nbenchsand_conformance_duration_seconds 41.200000\n"));
  CHECK(has(text, "\nbenchsand_conformance_timestamp_seconds 1796042096\n"));
  CHECK(has(report_metrics(suite::good()), "\nbenchsand_conformance_cases{verdict=\"ESCAPED\"} 0\n"));
  CHECK(has(report_metrics(suite::good()), "\nbenchsand_conformance_passed 1\n"));
}

TEST_CASE("metrics: names that would be one series are one, and pass together") {
  auto report = suite::report({suite::one("a", CaseVerdict::escaped), suite::one("a", CaseVerdict::refused)});
  CHECK(count_of(report_metrics(report), "benchsand_conformance_case{id=\"a\"") == 1);
  CHECK(has(report_metrics(report), "check=\"0\"} 0\n"));
  report.cases[0].id = "A\n\"}";
  CHECK(has(report_metrics(report), "{id=\"____\","));
  report.cases[0].id = std::string(1000, 'a');
  CHECK(has(report_metrics(report), "{id=\"" + std::string(64, 'a') + "\","));
}

TEST_CASE("metrics: the time of the run, or none") {
  const std::pair<const char*, const char*> rows[] = {{"1970-01-01T00:00:00Z", "0"},
                                                      {"2000-02-29T23:59:59Z", "951868799"},
                                                      {"2024-03-01T00:00:00Z", "1709251200"},
                                                      {"2026-11-30T12:34:56.789Z", "1796042096"},
                                                      {"2026-11-30T12:34:56+01:00", ""},
                                                      {"", ""},
                                                      {"2026-13-30T12:34:56Z", ""},
                                                      {"2026-1x-30T12:34:56Z", ""},
                                                      {"-026-11-30T12:34:56Z", ""}};
  for (const auto& [created, seconds] : rows) {
    auto report = suite::good();
    report.about.created = created;
    const std::string text = report_metrics(report), name = "\nbenchsand_conformance_timestamp_seconds ";
    CAPTURE(created);
    if (*seconds)
      CHECK(has(text, name + seconds + "\n"));
    else
      CHECK_FALSE(has(text, name));
  }
}
