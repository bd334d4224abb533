#include <doctest/doctest.h>

#include "conformance/baseline.h"
#include "sample_suite.h"

using namespace benchsand::conformance;

namespace suite = sample::suite;

namespace {

SuiteReport only(CaseVerdict verdict) {
  return suite::report({suite::one("a", verdict)});
}

}  // namespace

TEST_CASE("the same report has no drift, whenever it was made") {
  auto now = suite::every_verdict();
  now.about.created = "2026-12-01T00:00:00Z";
  now.about.duration_us = 1;
  now.cases[6].inside = "something else";
  const Drift drift = drift_between(suite::every_verdict(), now);
  CHECK_FALSE(is_regression(drift));
  CHECK(drift_text(drift) == "no drift\n");
}

TEST_CASE("every verdict against every other: worse is a regression, better is none") {
  for (const auto before : kCaseVerdicts)
    for (const auto now : kCaseVerdicts) {
      const Drift drift = drift_between(only(before), only(now));
      CHECK(drift.worse.size() == (badness(now) > badness(before) ? 1 : 0));
      CHECK(drift.better.size() == (badness(now) < badness(before) ? 1 : 0));
      CHECK(is_regression(drift) == !drift.worse.empty());
      if (passes(before) && !passes(now)) CHECK(is_regression(drift));
    }
}

TEST_CASE("an attempt that is not made any more is a regression; a new one only when it does not pass") {
  const auto one = only(CaseVerdict::refused), none = suite::report({});
  CHECK(is_regression(drift_between(one, none)));
  CHECK(drift_text(drift_between(one, none)) == "disappeared  a: was REFUSED\ndrift        REGRESSION\n");
  for (const auto verdict : kCaseVerdicts) CHECK(is_regression(drift_between(none, only(verdict))) == !passes(verdict));
  CHECK(drift_text(drift_between(none, one)) == "appeared  a: REFUSED\ndrift     no verdict became worse\n");
}

TEST_CASE("of two cases with one name the worst counts") {
  const auto twice = suite::report({suite::one("a", CaseVerdict::escaped), suite::one("a", CaseVerdict::refused)});
  const auto turned = suite::report({suite::one("a", CaseVerdict::refused), suite::one("a", CaseVerdict::escaped)});
  CHECK(is_regression(drift_between(only(CaseVerdict::refused), twice)));
  CHECK(is_regression(drift_between(only(CaseVerdict::refused), turned)));
}

TEST_CASE("every fact below the suite is told, and is no regression by itself") {
  const std::pair<std::string SuiteAbout::*, const char*> facts[] = {
      {&SuiteAbout::version, "benchsand"},
      {&SuiteAbout::engine, "engine"},
      {&SuiteAbout::delegate, "delegate"},
      {&SuiteAbout::delegate_version, "delegate version"},
      {&SuiteAbout::delegate_sha256, "delegate digest"},
      {&SuiteAbout::kernel, "kernel"},
      {&SuiteAbout::cgroup, "cgroup"},
      {&SuiteAbout::profile, "profile"},
      {&SuiteAbout::profile_sha256, "profile digest"},
      {&SuiteAbout::probe_sha256, "probe digest"},
      {&SuiteAbout::cases_sha256, "cases digest"},
  };
  for (const auto& [member, what] : facts) {
    auto now = suite::good();
    now.about.*member = "another";
    const Drift drift = drift_between(suite::good(), now);
    REQUIRE(drift.facts.size() == 1);
    CHECK(drift.facts[0].what == what);
    CHECK_FALSE(is_regression(drift));
    CHECK(drift_text(drift) == "changed  " + std::string(what) + ": " + suite::about().*member +
                                   " -> another\ndrift    no verdict became worse\n");
  }
}

TEST_CASE("the text of a drift: the worst first") {
  auto before = suite::report({suite::one("a", CaseVerdict::refused), suite::one("b", CaseVerdict::unknown),
                               suite::one("gone", CaseVerdict::refused)});
  auto now = suite::report({suite::one("a", CaseVerdict::escaped), suite::one("b", CaseVerdict::refused),
                            suite::one("new", CaseVerdict::vacuous)});
  now.about.kernel = "6.19.0";
  CHECK(drift_text(drift_between(before, now)) ==
        "changed      kernel: 6.18.44 -> 6.19.0\n"
        "worse        a: REFUSED -> ESCAPED (why ESCAPED)\n"
        "disappeared  gone: was REFUSED\n"
        "appeared     new: VACUOUS (why VACUOUS)\n"
        "better       b: UNKNOWN -> REFUSED\n"
        "drift        REGRESSION\n");
}

TEST_CASE("the text of a drift keeps hostile words on their lines") {
  const auto before = suite::report({}), now = suite::hostile(CaseVerdict::escaped);
  const std::string text = drift_text(drift_between(before, now));
  CHECK(sample::lines_of(text).size() == 2 + now.cases.size() + 1);  // two hostile facts of two
  for (const auto& line : sample::lines_of(text)) {
    CHECK((line.starts_with("changed ") || line.starts_with("appeared ") || line.starts_with("drift ")));
    CHECK(sample::is_plain(line));
  }
}
