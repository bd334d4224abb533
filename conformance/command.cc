#include "conformance/command.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "conformance/baseline.h"
#include "conformance/claims.h"
#include "conformance/compare.h"
#include "conformance/matrix.h"
#include "conformance/report_table.h"
#include "conformance/reports.h"
#include "conformance/suite.h"
#include "shim/engine_commands.h"
#include "shim/sys.h"

namespace benchsand::conformance {

namespace {

constexpr std::size_t kLargestBaseline = 32 << 20;
constexpr int kFails = 3;

struct Options {
  SuiteRequest suite;
  std::string format = "table";
  std::vector<std::string> writes;  // FORMAT=FILE
  std::string baseline;
  std::vector<std::string> compared;
  bool list = false, claims = false, matrix = false;
};

std::size_t width_of_terminal() {
  winsize size{};
  return ::isatty(1) == 1 && ::ioctl(1, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Result<std::string> written(const Options& options, const SuiteReport& report) {
  if (options.format != "table") return TRY(find_report_format(options.format)).write(report);
  const bool terminal = ::isatty(1) == 1;
  return report_table(report, terminal ? width_of_terminal() : 0, terminal && std::getenv("NO_COLOR") == nullptr);
}

Result<void> put(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return fault("write the report to stdout: " + std::string(std::strerror(errno)));
  return {};
}

struct ReportFile {
  ReportFormat format;
  std::string path;
};

Result<std::vector<ReportFile>> report_files(const Options& options) {
  std::vector<ReportFile> files;
  for (const auto& asked : options.writes) {
    const auto at = asked.find('=');
    if (at == std::string::npos || at + 1 == asked.size()) return usage("--write " + asked + ": FORMAT=FILE is due");
    files.push_back({TRY(find_report_format(asked.substr(0, at))), asked.substr(at + 1)});
  }
  return files;
}

Result<void> check_engine(const SuiteRequest& request) {
  if (request.no_shim && request.engine != "docker" && request.engine != "podman")
    return usage("conformance with --no-shim: " + request.engine +
                 " is no engine that runs without benchsand's runtime");
  if (request.profile == kEngineDefaults && !request.no_shim)
    return usage("profile " + request.profile + ": it is what an engine does by itself; say --no-shim too");
  if (request.no_shim && !request.programs.empty())
    return usage(
        "--programs with --no-shim: refused calls are not counted there, and how a program ends shows nothing");
  if (request.engine == kRunsc && !request.programs.empty())
    return usage("--programs with runsc: its network is another kernel's, and nobody watches it");
  return {};
}

// What was not asked for now has not disappeared.
void keep_asked(SuiteReport& baseline, const SuiteReport& now, const SuiteRequest& request) {
  if (request.only.empty()) return;
  std::erase_if(baseline.cases, [&](const CaseResult& before) {
    return std::none_of(now.cases.begin(), now.cases.end(), [&](const CaseResult& one) { return one.id == before.id; });
  });
}

Result<SuiteReport> report_in(const std::string& file) {
  return parse_report(TRY(sys::read_file(sys::kHere, file, kLargestBaseline)), file);
}

Result<std::string> compared(const std::vector<std::string>& files) {
  std::vector<SuiteReport> reports;
  for (const auto& file : files) reports.push_back(TRY(report_in(file)));
  return comparison_page(reports);
}

Result<int> run(Options& options, char** arguments) {
  if (!options.compared.empty()) {
    TRY_VOID(put(TRY(compared(options.compared))));
    return 0;
  }
  if (options.claims) {
    TRY_VOID(put(claims_page(TRY(builtin_cases()).list)));
    return 0;
  }
  if (options.list) {
    TRY_VOID(put(TRY(list_cases(options.suite))));
    return 0;
  }
  if (::geteuid() != 0) return fault("run the conformance suite: benchsand conformance must be root; use sudo");
  if (options.matrix && options.suite.engine == kRunsc)
    return usage("--matrix with runsc: walls are taken down with crun and runc");
  if (options.matrix) {
    TRY_VOID(put(TRY(run_matrix(options.suite))));
    return 0;
  }
  TRY_VOID(check_engine(options.suite));
  const auto files = TRY(report_files(options));
  for (const auto kind : {ApiKind::docker, ApiKind::podman})
    if (options.suite.engine == to_text(kind)) options.suite.api = kind;
  if (options.suite.api && engine_commands() == nullptr) return std::unexpected(become_engines(arguments));
  std::optional<SuiteReport> baseline;
  if (!options.baseline.empty()) baseline = TRY(report_in(options.baseline));
  const bool shows = ::isatty(2) == 1;
  if (shows) options.suite.progress = [](const std::string& text) { std::fprintf(stderr, "\r\033[K%s", text.c_str()); };
  const auto report = run_suite(options.suite);
  if (shows) std::fputs("\r\033[K", stderr);
  if (!report) return std::unexpected(report.error());
  TRY_VOID(put(TRY(written(options, *report))));
  for (const auto& file : files) TRY_VOID(sys::replace_file(file.path, file.format.write(*report), 0644));
  bool regressed = false;
  if (baseline) {
    keep_asked(*baseline, *report, options.suite);
    const Drift drift = drift_between(*baseline, *report);
    std::fputs(drift_text(drift).c_str(), stderr);
    regressed = is_regression(drift);
  }
  return passes(*report) && !regressed ? 0 : kFails;
}

}  // namespace

void add_command(CLI::App& app, char** arguments, const std::function<void(const Result<int>&)>& done) {
  CLI::App* command = app.add_subcommand(
      "conformance", "attempt what the walls refuse, with and without each wall, and count on the host");
  command->allow_extras(false);
  const auto options = std::make_shared<Options>();
  command->add_option("--engine", options->suite.engine, "crun (default), runc, docker, podman, or runsc: gVisor")
      ->check(CLI::IsMember({"crun", "runc", "docker", "podman", kRunsc}));
  command->add_option("--profile", options->suite.profile, "whose walls are attempted (default strict)");
  command->add_flag(
      "--no-shim", options->suite.no_shim,
      "containers of docker or podman without benchsand's runtime; the profile engine-defaults is what the "
      "engine does by itself");
  command->add_option(
      "--programs", options->suite.programs,
      "a root file system with curl, git, ssh, pip and others, through which the network is attempted too");
  command->add_option("--only", options->suite.only, "cases, walls or groups by name, or `ten`: the ten checks");
  command->add_option("--write", options->writes,
                      "FORMAT=FILE: the report in this format too, a whole new file; can be repeated");
  command->add_option("--baseline", options->baseline,
                      "a report in JSON of before: what changed since is told on stderr");
  command->add_option("--compare", options->compared,
                      "reports in JSON beside each other, as a page of docs/; nothing runs");
  command->add_flag("--claims", options->claims, "what benchsand claims, as a page of docs/; nothing runs");
  command->add_flag("--matrix", options->matrix,
                    "which attempts notice each wall that is taken down, as a page of docs/");
  command->add_flag("--list", options->list, "the cases; nothing runs");
  std::vector<std::string> formats = {"table"};
  for (const auto& format : report_formats()) formats.push_back(format.name);
  command->add_option("--format", options->format, "of the report")->check(CLI::IsMember(formats));
  command->callback([=] { done(run(*options, arguments)); });
}

}  // namespace benchsand::conformance
