#include <doctest/doctest.h>

#include <tuple>

#include "conformance/guest_text.h"
#include "conformance/report_table.h"
#include "conformance/tally.h"
#include "sample_suite.h"

using namespace benchsand;
using namespace benchsand::conformance;
using sample::count_of;
using sample::lines_of;

namespace suite = sample::suite;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The line that begins with `start`.
std::string line_with(const std::string& text, const std::string& start) {
  for (const auto& line : lines_of(text))
    if (line.starts_with(start)) return line;
  return "no line begins with " + start;
}

}  // namespace

TEST_CASE("verdicts: their names, and which of them pass") {
  const std::tuple<CaseVerdict, const char*, bool> rows[] = {
      {CaseVerdict::refused, "REFUSED", true},       {CaseVerdict::escaped, "ESCAPED", false},
      {CaseVerdict::vacuous, "VACUOUS", false},      {CaseVerdict::inapplicable, "INAPPLICABLE", true},
      {CaseVerdict::unknown, "UNKNOWN", false},      {CaseVerdict::confirmed_limit, "CONFIRMED-LIMIT", true},
      {CaseVerdict::limit_gone, "LIMIT-GONE", true},
  };
  CHECK(std::size(rows) == kCaseVerdicts.size());
  for (const auto& [verdict, name, good] : rows) {
    CHECK(std::string(to_text(verdict)) == name);
    CHECK(passes(verdict) == good);
    CHECK(passes(suite::report({suite::one("a", verdict)})) == good);
    CHECK(passes(suite::report({suite::one("a", CaseVerdict::refused), suite::one("b", verdict)})) == good);
  }
}

TEST_CASE("a report without cases does not pass, and neither does a case that nobody judged") {
  CHECK_FALSE(passes(SuiteReport{}));
  CHECK_FALSE(passes(suite::report({})));
  CHECK_FALSE(passes(SuiteReport{{}, {CaseResult{}}}));
  CHECK(passes(suite::good()));
}

TEST_CASE("what passes is never worse than what does not, and escaped is the worst") {
  for (const auto a : kCaseVerdicts)
    for (const auto b : kCaseVerdicts)
      if (passes(a) && !passes(b)) CHECK(badness(a) < badness(b));
  CHECK(badness(CaseVerdict::refused) == 0);
  for (const auto verdict : kCaseVerdicts) CHECK(badness(verdict) <= badness(CaseVerdict::escaped));
}

TEST_CASE("the summary counts what occurs") {
  CHECK(summary_line(suite::report({})) == "no attempt was made");
  CHECK(summary_line(suite::good()) == "11 attempts: 11 REFUSED");
  CHECK(summary_line(suite::report({suite::one("a", CaseVerdict::escaped)})) == "1 attempt: 1 ESCAPED");
  CHECK(summary_line(suite::every_verdict()) ==
        "7 attempts: 1 REFUSED, 1 INAPPLICABLE, 1 CONFIRMED-LIMIT, 1 LIMIT-GONE, 1 VACUOUS, 1 UNKNOWN, 1 ESCAPED");
}

TEST_CASE("the ten have their numbers and the words that people quote") {
  CHECK(kTenChecks.size() == 10);
  for (unsigned i = 0; i < kTenChecks.size(); ++i) CHECK(kTenChecks[i].number == i + 1);
  CHECK(std::string(kTenChecks[3].title) == "the thirty-third process");
}

TEST_CASE("a check is as bad as the worst of its cases; one without cases was not tried") {
  const auto report = suite::report({suite::one("a", CaseVerdict::refused, 9), suite::one("b", CaseVerdict::unknown, 9),
                                     suite::one("c", CaseVerdict::inapplicable, 9)});
  const auto ten = ten_results(report);
  REQUIRE(ten.size() == 10);
  CHECK(ten[8].attempts == 3);
  REQUIRE(ten[8].worst);
  CHECK(ten[8].worst->id == "b");
  CHECK(ten[0].attempts == 0);
  CHECK_FALSE(ten[0].worst);
  const std::string table = report_table(report, 0, false);
  CHECK(has(line_with(table, "check  9"), "reach the cloud metadata address"));
  CHECK(has(line_with(table, "check  9"), "UNKNOWN    3 attempts; ledger: bpf EPERM 1 of 1"));
  CHECK(has(line_with(table, "check  1"), "not tried"));
}

TEST_CASE("a check's number that is of none of the ten hides no case") {
  const auto report = suite::report({suite::one("odd", CaseVerdict::refused, 11)});
  REQUIRE(further_by_wall(report).size() == 1);
  CHECK(further_by_wall(report)[0].cases[0]->id == "odd");
}

TEST_CASE("further cases stand by wall, walls in their order, unknown walls too") {
  auto memory = suite::one("m", CaseVerdict::refused), odd = suite::one("o", CaseVerdict::refused);
  memory.wall = "memory";
  odd.wall = "a wall of nobody";
  const auto report = suite::report({odd, suite::one("s", CaseVerdict::refused), memory});
  const auto groups = further_by_wall(report);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].wall == "memory");
  CHECK(groups[1].wall == "syscalls");
  CHECK(groups[2].wall == "a wall of nobody");
}

TEST_CASE("the table of a good report") {
  const std::string table = report_table(suite::good(), 0, false);
  const auto lines = lines_of(table);
  CHECK(lines[0] == "benchsand  0.1.0, 2026-11-30T12:34:56Z, 41200 ms");
  CHECK(has(table, "delegate   crun 1.8.1, dddddddddddd\n"));
  CHECK(line_with(table, "check  4") ==
        "check  4  the thirty-third process                          REFUSED  1 attempt; ledger: bpf EPERM 1 of 1");
  CHECK(line_with(table, "check 10").starts_with("check 10  leave a process running after return"));
  CHECK(has(table,
            "wall syscalls\n  kernel.bpf-map  make a BPF map  EPERM by seccomp  EPERM   ledger: bpf EPERM 1 of 1  "
            "without seccomp: ok  "
            "REFUSED\n"));
  CHECK(table.ends_with("\n11 attempts: 11 REFUSED\nPASSED\n"));
  CHECK_FALSE(has(table, "\033"));
}

TEST_CASE("the table tells failures again, the worst first, with the reason") {
  const std::string table = report_table(suite::every_verdict(), 0, false);
  const auto escaped = table.find("\nESCAPED case.6\n"), unknown = table.find("\nUNKNOWN case.5\n"),
             vacuous = table.find("\nVACUOUS case.4\n");
  CHECK(escaped < unknown);
  CHECK(unknown < vacuous);
  REQUIRE(vacuous != std::string::npos);
  CHECK(has(table.substr(escaped), "  reason    why ESCAPED\n"));
  CHECK(has(table, "  INAPPLICABLE: why INAPPLICABLE\n"));
  CHECK(has(table, "notice      the documentation is out of date: case.3: make a BPF map: why LIMIT-GONE\n"));
  CHECK(table.ends_with("1 ESCAPED\nFAILED\n"));
  CHECK_FALSE(has(table, "\nREFUSED case"));
}

TEST_CASE("many attempts of which nothing is known for one reason are told together, and no others are") {
  std::vector<CaseResult> cases;
  for (int i = 0; i < 20; ++i) {
    cases.push_back(suite::one("a." + std::to_string(i), CaseVerdict::unknown));
    cases.back().reason = "there was no sandbox";
    cases.push_back(suite::one("b." + std::to_string(i), CaseVerdict::escaped));
    cases.back().reason = "it worked";
  }
  const std::string table = report_table(suite::report(cases), 0, false);
  CHECK(has(table, "\nUNKNOWN 20 attempts\n  names   a.0, a.1, a.2, ...\n  reason  there was no sandbox\n"));
  CHECK_FALSE(has(table, "\nUNKNOWN a.0\n"));
  CHECK(has(table, "\nESCAPED b.19\n"));
}

TEST_CASE("what was asked for as a whole, but for the ordinary programs, says so") {
  auto report = suite::good();
  CHECK_FALSE(has(report_table(report, 0, false), "--programs"));
  report.lacks_programs = true;
  CHECK(has(report_table(report, 0, false),
            "\nnotice      curl, git, ssh, pip and other ordinary programs were not attempted: --programs ROOTFS names "
            "a root file system that has them\n"));
}

TEST_CASE("the table of nothing fails") {
  CHECK(report_table(suite::report({}), 0, false).ends_with("\nno attempt was made\nFAILED\n"));
}

TEST_CASE("colour is for the verdicts alone, and only where it is asked for") {
  const auto report = suite::every_verdict();
  const std::string plain = report_table(report, 0, false), coloured = report_table(report, 0, true);
  CHECK(has(coloured, "  \033[32mREFUSED\033[0m\n"));
  CHECK(has(coloured, "  \033[31mESCAPED\033[0m\n"));
  CHECK(has(coloured, "\033[31mFAILED\033[0m\n"));
  std::string stripped = coloured;
  for (const char* code : {"\033[31m", "\033[32m", "\033[0m"})
    for (auto at = stripped.find(code); at != std::string::npos; at = stripped.find(code))
      stripped.erase(at, std::string(code).size());
  CHECK(stripped == plain);
  CHECK(
      has(report_table(suite::good(), 0, true), "process                          \033[32mREFUSED\033[0m  1 attempt"));
}

TEST_CASE("a table is as wide as the terminal, verdicts whole") {
  auto report = suite::good();
  report.cases.back().host = std::string(300, 'h');
  report.cases.back().verdict = CaseVerdict::confirmed_limit;
  for (const std::size_t width : {80u, 100u, 132u, 200u}) {
    const std::string table = report_table(report, width, false);
    for (const auto& line : lines_of(table)) CHECK_MESSAGE(line.size() <= width, line);
    CHECK(has(table, "CONFIRMED-LIMIT\n"));
    CHECK(has(table, ".."));
  }
  CHECK_FALSE(has(report_table(report, 10, false), "\n\n\n"));  // too narrow for anything: cells at their narrowest
}

TEST_CASE("the table: hostile text begins no line, hides nothing and takes no more room than there is") {
  for (const auto verdict : kCaseVerdicts) {
    const std::string table = report_table(suite::hostile(verdict), 120, false);
    CHECK(table.size() < 1'500'000);
    std::size_t good = 0;
    for (const auto& line : lines_of(table)) {
      const auto text = line.find_first_not_of(' ');
      if (text != std::string::npos) CHECK_FALSE(line.compare(text, 2, "::") == 0);
      CHECK(sample::is_plain(line));
      CHECK_FALSE(has(line, "##["));
      good += line == "PASSED";
    }
    CHECK(good == (passes(verdict) ? 1 : 0));
  }
}

TEST_CASE("text on one line: nothing hidden, nothing lost, never longer") {
  CHECK(line_text("plain caf\xc3\xa9") == "plain caf\xc3\xa9");
  CHECK(ascii_text("caf\xc3\xa9") == "caf\\xc3\\xa9");
  CHECK(line_text("a\nb\x1b[0m\xff\\n") == "a\\x0ab\\x1b[0m\\xff\\\\n");
  CHECK(line_text("##[error] #[ ###[") == "\\x23\\x23[error] #[ #\\x23\\x23[");
  for (const auto& text : sample::suite::hostile_texts()) {
    const std::string line = line_text(text);
    CHECK(line.size() <= 4 * kLongestText);
    CHECK_FALSE(has(line, "##["));
    CHECK(sample::is_all_shown(line));
  }
}

TEST_CASE("a long text keeps its beginning, and cutting it again changes nothing") {
  CHECK(cut_text(std::string(1024, 'a'), 1024) == std::string(1024, 'a'));
  const std::string cut = cut_text(std::string(1025, 'a'), 1024);
  CHECK(cut.size() == 1024);
  CHECK(cut.ends_with("a (cut, of 1025 bytes)"));
  CHECK(cut_text(cut, 1024) == cut);
  std::string euros;
  for (int i = 0; i < 500; ++i) euros += "\xe2\x82\xac";
  for (std::size_t most = 64; most < 70; ++most) CHECK_FALSE(has(line_text(euros, most), "\\x"));
  CHECK(cut_text(std::string(200, '\x80'), 64).size() <= 64);
}
