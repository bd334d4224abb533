#include <initializer_list>

#include "conformance/guest_text.h"
#include "conformance/reports.h"
#include "conformance/tally.h"

namespace benchsand::conformance {

namespace {

constexpr std::size_t kForTheEnd = 200;  // bytes kept free for the line that says what was cut

// Whole lines as long as they fit; the rest is counted.
class Page {
 public:
  explicit Page(std::size_t most) : most_(most > kForTheEnd ? most - kForTheEnd : 0) {}

  void line(const std::string& text = "") { put(text + "\n", 0); }
  void row(std::initializer_list<std::string> cells) { put(row_text(cells), 1); }

  // Nothing of a table without rows.
  void heading(const std::string& title, std::initializer_list<std::string> cells) {
    std::string rule = "|";
    for (std::size_t i = 0; i < cells.size(); ++i) rule += "---|";
    put("\n## " + title + "\n\n" + row_text(cells) + rule + "\n", 0);
  }

  std::string end() const {
    if (cut_rows_ == 0 && !full_) return text_;
    return text_ + "\n**Cut: " + std::to_string(cut_rows_) + " more rows; the JSON report has them all.**\n";
  }

 private:
  static std::string row_text(std::initializer_list<std::string> cells) {
    std::string text = "|";
    for (const auto& cell : cells) text += " " + cell + " |";
    return text + "\n";
  }

  void put(const std::string& text, std::size_t rows) {
    full_ = full_ || text_.size() + text.size() > most_;
    if (full_)
      cut_rows_ += rows;
    else
      text_ += text;
  }

  std::size_t most_;
  std::string text_;
  std::size_t cut_rows_ = 0;
  bool full_ = false;
};

std::string bold_unless_good(CaseVerdict verdict) {
  const std::string text = to_text(verdict);
  return passes(verdict) ? text : "**" + text + "**";
}

std::string short_digest(const std::string& sha256) {
  return markdown_prose(sha256.substr(0, 12));
}

void head(Page& page, const SuiteReport& report) {
  const SuiteAbout& about = report.about;
  page.line("# benchsand conformance: " + std::string(passes(report) ? "passed" : "**FAILED**"));
  page.line();
  page.line(summary_line(report) + ".");
  page.line();
  if (const std::string whose = whose_walls(about); !whose.empty()) {
    page.line("**Not benchsand: " + markdown_prose(whose) + ".**");
    page.line();
  }
  page.line("benchsand " + markdown_prose(about.version) + ", engine " + markdown_prose(about.engine) + ", delegate " +
            markdown_prose(about.delegate + " " + about.delegate_version) + " (" + short_digest(about.delegate_sha256) +
            "), Linux " + markdown_prose(about.kernel) + ", cgroup " + markdown_prose(about.cgroup) + ", profile " +
            markdown_prose(about.profile) + " (" + short_digest(about.profile_sha256) + "), probe " +
            short_digest(about.probe_sha256) + ", cases " + short_digest(about.cases_sha256) + ", " +
            markdown_prose(about.created) + ".");
  if (!report.lacks_programs) return;
  page.line();
  page.line(std::string(kLacksPrograms) + ".");
}

// First, so that no cap takes them.
void failed(Page& page, const SuiteReport& report) {
  const auto list = failures(report);
  if (list.empty()) return;
  page.heading("Failures", {"attempt", "verdict", "why", "expected", "inside", "host", "control"});
  for (const auto* result : list)
    page.row({markdown_prose(name_of(*result)), bold_unless_good(result->verdict), markdown_code(result->reason),
              markdown_prose(result->expected), markdown_code(result->inside), markdown_code(result->host),
              markdown_code(result->control)});
}

void ten(Page& page, const SuiteReport& report) {
  page.heading("The ten checks", {"", "check", "attempts", "verdict", "seen by the host"});
  for (const auto& [check, attempts, worst] : ten_results(report))
    page.row({std::to_string(check.number), check.title, std::to_string(attempts),
              worst ? bold_unless_good(worst->verdict) : "not tried", worst ? markdown_code(worst->host) : ""});
}

void further(Page& page, const SuiteReport& report) {
  for (const auto& [wall, cases] : further_by_wall(report)) {
    page.heading("Wall " + markdown_prose(wall), {"attempt", "expected", "inside", "host", "control", "verdict"});
    for (const auto* result : cases)
      page.row({markdown_prose(result->attempt), markdown_prose(result->expected), markdown_code(result->inside),
                markdown_code(result->host), markdown_code(result->control), bold_unless_good(result->verdict)});
  }
}

}  // namespace

std::string report_markdown(const SuiteReport& report, std::size_t most) {
  Page page(most);
  head(page, report);
  failed(page, report);
  ten(page, report);
  further(page, report);
  return page.end();
}

}  // namespace benchsand::conformance
