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
#include <filesystem>
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
constexpr std::size_t kWidthOfFile = 200;  // of a table that is not for a terminal

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
  return report_table(report, terminal ? width_of_terminal() : kWidthOfFile,
                      terminal && std::getenv("NO_COLOR") == nullptr);
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

// Before the attempts are made: half a minute later it would be too late to say so.
Result<void> check_target(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path file(path);
  const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  if (path == "-") return usage("--write to -: a file is due; what is printed is chosen with --format");
  if (!std::filesystem::is_directory(folder, failed))
    return usage("--write to " + path + ": there is no directory " + folder.string());
  if (::access(folder.c_str(), W_OK) != 0)
    return usage("--write to " + path + ": " + folder.string() + ": " + std::strerror(errno));
  const auto there = std::filesystem::symlink_status(file, failed);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(file, failed))
    return usage("--write to " + path + ": it is no regular file, and would be replaced by one");
  return {};
}

Result<std::vector<ReportFile>> report_files(const Options& options) {
  std::vector<ReportFile> files;
  for (const auto& asked : options.writes) {
    const auto at = asked.find('=');
    if (at == std::string::npos || at + 1 == asked.size()) return usage("--write " + asked + ": FORMAT=FILE is due");
    if (asked.starts_with("table=")) return usage("--write " + asked + ": the table is printed; see --format");
    files.push_back({TRY(find_report_format(asked.substr(0, at))), asked.substr(at + 1)});
    TRY_VOID(check_target(files.back().path));
  }
  return files;
}

Result<void> check_engine(const SuiteRequest& request) {
  if (request.no_shim && request.engine != "docker" && request.engine != "podman")
    return usage("conformance with --no-shim: " + request.engine +
                 " is no engine that runs without benchsand's runtime; say --engine docker or podman");
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
  const auto dropped = std::erase_if(baseline.cases, [&](const CaseResult& before) {
    return std::none_of(now.cases.begin(), now.cases.end(), [&](const CaseResult& one) { return one.id == before.id; });
  });
  if (dropped != 0)
    std::fprintf(stderr, "note     %zu attempts of the baseline are not compared: --only left them out\n", dropped);
}

Result<SuiteReport> report_in(const std::string& file) {
  std::error_code failed;
  if (std::filesystem::exists(file, failed) && !std::filesystem::is_regular_file(file, failed))
    return usage("read the report " + file + ": it is no regular file");  // a FIFO would wait for ever
  const auto text = sys::read_file(sys::kHere, file, kLargestBaseline);
  if (!text) return usage("read the report " + file + ": " + std::strerror(text.error().error_number));
  return parse_report(*text, file);
}

// What changed since then, told; true: for the worse.
Result<bool> has_regressed(const Options& options, const SuiteReport& report) {
  if (options.baseline.empty()) return false;
  if (!TRY(sys::exists(sys::kHere, options.baseline)))
    return usage("compare with the baseline: there is no " + options.baseline +
                 " yet; to accept this run, make it with --write json=" + options.baseline + " and without --baseline");
  SuiteReport baseline = TRY(report_in(options.baseline));
  keep_asked(baseline, report, options.suite);
  const Drift drift = drift_between(baseline, report);
  std::fputs(drift_text(drift).c_str(), stderr);
  return is_regression(drift);
}

// A broken baseline is told before the attempts; one that is not there yet after them, when there are reports to begin with.
Result<void> check_baseline(const Options& options) {
  if (options.baseline.empty() || !TRY(sys::exists(sys::kHere, options.baseline))) return {};
  TRY(report_in(options.baseline));
  return {};
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
  if (options.matrix && options.suite.engine != "crun" && options.suite.engine != "runc")
    return usage("--matrix with " + options.suite.engine + ": walls are taken down with crun and runc");
  if (options.matrix && !options.suite.only.empty()) return usage("--matrix with --only: it makes every attempt");
  if (options.matrix) {
    TRY_VOID(put(TRY(run_matrix(options.suite))));
    return 0;
  }
  TRY_VOID(check_engine(options.suite));
  const auto files = TRY(report_files(options));
  for (const auto kind : {ApiKind::docker, ApiKind::podman})
    if (options.suite.engine == to_text(kind)) options.suite.api = kind;
  if (options.suite.api && engine_commands() == nullptr) return std::unexpected(become_engines(arguments));
  TRY_VOID(check_baseline(options));
  const bool shows = ::isatty(2) == 1;
  if (shows) options.suite.progress = [](const std::string& text) { std::fprintf(stderr, "\r\033[K%s", text.c_str()); };
  const auto report = run_suite(options.suite);
  if (shows) std::fputs("\r\033[K", stderr);
  if (!report) return std::unexpected(report.error());
  TRY_VOID(put(TRY(written(options, *report))));
  for (const auto& file : files) TRY_VOID(sys::replace_file(file.path, file.format.write(*report), 0644));
  const bool regressed = TRY(has_regressed(options, *report));
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
  command->footer(
      "Examples:\n"
      "  benchsand conformance                          every attempt with crun; a table\n"
      "  benchsand conformance --only ten               the ten checks\n"
      "  benchsand conformance --engine docker --write junit=walls.xml --write json=walls.json\n"
      "  benchsand conformance --baseline walls.json    what has changed since then\n"
      "Exit status: 0 all attempts pass, and with --baseline none became worse; 2 usage, or no such baseline; 3 "
      "otherwise.");
  command->callback([=] { done(run(*options, arguments)); });
}

}  // namespace benchsand::conformance
