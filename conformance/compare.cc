#include "conformance/compare.h"

#include <algorithm>
#include <set>

#include "conformance/guest_text.h"
#include "conformance/tally.h"

namespace benchsand::conformance {

namespace {

constexpr std::size_t kLongestCell = 64;

constexpr const char* kIntroduction =
    "# Engines compared\n\n"
    "Made by `benchsand conformance --compare` from reports of one probe and the same attempts ([conformance.md]"
    "(conformance.md)). *Stands*: the attempt was refused, by whatever\n"
    "refuses it there. *Falls*: it was let through. That is no way out of the container by itself: engines are made "
    "for "
    "programs that somebody trusts, and most of what falls is what\n"
    "such programs use. *Not shown*: the attempt was let through and found nothing, or could not be seen; what would "
    "have "
    "come of it is not known. *Not here*: this kernel has no such thing.\n";

std::string title_of(const SuiteAbout& about) {
  const auto engine = [&](const char* suffix) {
    return about.engine.ends_with(suffix) ? about.engine.substr(0, about.engine.find(suffix)) : "";
  };
  std::string title = "benchsand on " + about.engine;
  if (const std::string alone = engine(kWithoutBenchsand); !alone.empty()) title = alone + " alone";
  if (const std::string other = engine(kWithoutDoor); !other.empty()) title = "benchsand's bundle in " + other;
  return markdown_prose(title);
}

const char* word_of(CaseVerdict verdict) {
  switch (verdict) {
    case CaseVerdict::refused:
      return "stands";
    case CaseVerdict::escaped:
      return "**falls**";
    case CaseVerdict::inapplicable:
      return "not here";
    case CaseVerdict::confirmed_limit:
      return "not claimed";
    case CaseVerdict::limit_gone:
      return "refused, and not claimed";
    case CaseVerdict::vacuous:
    case CaseVerdict::unknown:
      return "not shown";
  }
  return "";
}

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const auto& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string rule(std::size_t cells) {
  std::string text = "|";
  for (std::size_t i = 0; i < cells; ++i) text += "---|";
  return text + "\n";
}

std::string first_word(const std::string& text) {
  return text.substr(0, std::min(text.find(' '), kLongestCell));
}

class Page {
 public:
  explicit Page(const std::vector<SuiteReport>& reports) : reports_(reports) {}

  std::string text() const { return kIntroduction + measured() + ten() + walls() + differences(); }

 private:
  // A row with a cell for each report.
  template <class Cell>
  std::string row_of(const std::string& title, Cell cell) const {
    std::vector<std::string> cells = {title};
    for (const auto& report : reports_) cells.push_back(cell(report));
    return row(cells);
  }

  std::string heading(const std::string& title, const std::string& first) const {
    return "\n" + (title.empty() ? "" : "## " + title + "\n\n") +
           row_of(first, [](const SuiteReport& report) { return title_of(report.about); }) + rule(reports_.size() + 1);
  }

  std::string measured() const;
  std::string ten() const;
  std::string walls() const;
  std::string differences() const;

  const std::vector<SuiteReport>& reports_;
};

std::string Page::measured() const {
  std::string text = heading("", "");
  const auto of = [&](const char* title, auto value) {
    text += row_of(title, [&](const SuiteReport& report) { return markdown_code(value(report.about)); });
  };
  of("containers by", [](const SuiteAbout& about) { return about.delegate + " " + about.delegate_version; });
  of("profile", [](const SuiteAbout& about) { return about.profile; });
  of("host", [](const SuiteAbout& about) { return "Linux " + about.kernel + ", cgroup " + about.cgroup; });
  of("measured", [](const SuiteAbout& about) { return about.created.substr(0, 10) + ", benchsand " + about.version; });
  std::set<std::string> told;
  for (const auto verdict : kCaseVerdicts) {
    const std::string word = word_of(verdict);
    if (!told.insert(word).second) continue;
    text += row_of(word, [&](const SuiteReport& report) {
      return std::to_string(std::count_if(report.cases.begin(), report.cases.end(),
                                          [&](const CaseResult& one) { return word_of(one.verdict) == word; }));
    });
  }
  return text;
}

std::string Page::ten() const {
  std::string text = heading("The ten checks", "check");
  for (std::size_t i = 0; i < kTenChecks.size(); ++i)
    text += row_of(std::to_string(kTenChecks[i].number) + " " + kTenChecks[i].title, [&](const SuiteReport& report) {
      const auto* worst = ten_results(report)[i].worst;
      return std::string(worst ? word_of(worst->verdict) : "not tried");
    });
  return text;
}

// All of a wall, those of the ten too.
std::string Page::walls() const {
  std::string text = heading("How many attempts stand, by wall", "wall");
  std::vector<std::string> names;
  for (const auto& one : reports_.front().cases)
    if (std::find(names.begin(), names.end(), one.wall) == names.end()) names.push_back(one.wall);
  for (const auto& name : names)
    text += row_of(markdown_code(name), [&](const SuiteReport& report) {
      std::size_t all = 0, stand = 0;
      for (const auto& one : report.cases) {
        const std::string word = one.wall == name ? word_of(one.verdict) : "";
        stand += word == "stands";
        all += word == "stands" || word == "**falls**" || word == "not shown";
      }
      return std::to_string(stand) + " of " + std::to_string(all);
    });
  return text;
}

// Where all come to the same there is nothing to compare.
std::string Page::differences() const {
  std::string text = heading("Where they differ", "attempt");
  const auto& first = reports_.front().cases;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool same = std::all_of(reports_.begin(), reports_.end(), [&](const SuiteReport& report) {
      return std::string(word_of(report.cases[i].verdict)) == word_of(first[i].verdict);
    });
    if (same) continue;
    text += row_of(markdown_prose(first[i].attempt) + " (" + first[i].id + ")", [&](const SuiteReport& report) {
      return std::string(word_of(report.cases[i].verdict)) + ", " + markdown_code(first_word(report.cases[i].inside));
    });
  }
  return text;
}

bool has_same_cases(const SuiteReport& one, const SuiteReport& other) {
  return one.about.cases_sha256 == other.about.cases_sha256 && one.about.probe_sha256 == other.about.probe_sha256 &&
         std::equal(one.cases.begin(), one.cases.end(), other.cases.begin(), other.cases.end(),
                    [](const CaseResult& a, const CaseResult& b) { return a.id == b.id; });
}

}  // namespace

Result<std::string> comparison_page(const std::vector<SuiteReport>& reports) {
  for (const auto& report : reports) {
    if (report.cases.empty()) return usage(std::string("compare reports: in one of them ") + kNoAttempt);
    if (!has_same_cases(report, reports.front()))
      return usage("compare reports: that of " + report.about.engine +
                   " is of another probe or of other attempts than that of " + reports.front().about.engine +
                   "; make them with one benchsand and the same options");
  }
  return Page(reports).text();
}

}  // namespace benchsand::conformance
