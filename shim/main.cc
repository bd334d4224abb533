// The command line of benchsand. stdout carries results, stderr carries messages.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "conformance/command.h"
#include "oci/html_page.h"
#include "oci/limits_page.h"
#include "oci/plot.h"
#include "oci/record.h"
#include "oci/record_check.h"
#include "oci/report.h"
#include "shim/command_tree.h"
#include "shim/doctor.h"
#include "shim/engine_commands.h"
#include "shim/image_commands.h"
#include "shim/install.h"
#include "shim/learn.h"
#include "shim/record_store.h"
#include "shim/rootfs.h"
#include "shim/run.h"
#include "shim/task_bundle.h"
#include "shim/teardown.h"

namespace benchsand {
namespace {

enum Exit { kSucceeded = 0, kFailed = 1, kUsage = 2, kNotScored = 3 };

void say(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int complain(const Error& error) {
  std::fprintf(stderr, "benchsand: %s\n", error.message.c_str());
  return error.kind == Error::Kind::usage ? kUsage : kNotScored;
}

struct Options {
  char** arguments = nullptr;  // as the program was called
  TaskRequest task;
  std::string engine = "crun";
  std::string results = "benchsand-results", learned_results;
  std::string bundle, record, page, shell, for_engine;
  InstallRequest install;
  std::vector<std::string> settings;
  std::string profile;
  bool without_shim = false;
  bool json = false, quiet = false, markdown = false, plot = false, ascii = false;
};

Result<const EngineCommands*> require_engines(const Options& options);
std::optional<ApiKind> api_engine(const std::string& engine);

Result<void> finish_request(Options& options) {
  if (!api_engine(options.engine))
    options.task.unpack_stored = [&options](const ImageRef& image) -> Result<std::string> {
      return TRY(require_engines(options))->unpack_image(image);
    };
  if (!options.profile.empty()) options.task.profile = options.profile;
  for (const auto& text : options.settings) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
      return usage("read --set " + text + ": not KEY=VALUE, for example --set limits.memory=64MiB");
    options.task.settings.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return {};
}

// For commands that run nothing and so need no host.
HostFacts facts_without_a_run(const std::string& engine) {
  const auto cgroup = CgroupHost::find();
  return host_facts(cgroup ? cgroup->layout() : CgroupLayout::v2, {engine, "", ""});
}

// The table of what needs an engine's API; the small program becomes the one that has it.
Result<const EngineCommands*> require_engines(const Options& options) {
  if (const auto* commands = engine_commands()) return commands;
  return std::unexpected(become_engines(options.arguments));
}

std::optional<ApiKind> api_engine(const std::string& engine) {
  for (const auto kind : {ApiKind::docker, ApiKind::podman})
    if (engine == to_text(kind)) return kind;
  return std::nullopt;
}

void say_record(const Options& options, const nlohmann::json& record, const std::string& results) {
  if (options.json)
    say(record.dump(2, ' ', true) + "\n");
  else if (!options.quiet)
    say(verdict_table(record, ::isatty(STDOUT_FILENO) == 1) + "results     " + results + "\n");
}

Result<int> run_on_engine(const Options& options, ApiKind kind) {
  const auto report =
      TRY(TRY(require_engines(options))->run({options.task, kind, options.results, options.without_shim}));
  say_record(options, report.record, report.results);
  return record_exit_status(report.record);
}

Result<int> run(const Options& options) {
  // The task first: a mistake in it should not need root to be found.
  auto policy = TRY(load_policy(options.task, host_facts(CgroupLayout::v2, {options.engine, "", ""})));
  TRY_VOID(check_task_files(policy));
  if (const auto kind = api_engine(options.engine)) return run_on_engine(options, *kind);
  if (options.without_shim)
    return usage("run with --without-shim: " + options.engine +
                 " is driven by benchsand itself; choose --engine docker or podman");
  const auto host = TRY(require_host(options.engine));
  const auto report = TRY(run_task(host, std::move(policy), options.results));
  say_record(options, report.record, report.results);
  // The table has said it already.
  if (!report.end.fault.empty() && (options.json || options.quiet))
    std::fprintf(stderr, "benchsand: %s\n", on_one_line(report.end.fault).c_str());
  return exit_status(report.verdict, report.end);
}

Result<int> check(const Options& options) {
  TaskRequest looked_at = options.task;
  looked_at.unpack_stored = nullptr;
  auto policy = TRY(load_policy(looked_at, facts_without_a_run(options.engine)));
  TRY_VOID(check_task_files(policy));
  TRY_VOID(look_at_image(policy));
  nlohmann::json document = policy_json(policy);
  document["task"] = {{"name", policy.task_name}, {"sha256", policy.task_sha256}};
  document["profile"] = {{"name", policy.profile_name}, {"sha256", policy.profile_sha256}};
  document["notices"] = policy.notices;
  say(document.dump(2, ' ', true) + "\n");
  return kSucceeded;
}

// The profile that a trusted program needed, on stdout.
Result<int> learn(const Options& options) {
  std::fprintf(stderr,
               "benchsand: learn lets the program make every call that some profile could allow: only for a program "
               "that you trust, and without a score\n");
  const auto report = TRY(learn_profile({options.task, options.engine, options.learned_results}));
  say(report.profile);
  if (!options.learned_results.empty()) std::fprintf(stderr, "benchsand: results %s\n", report.run.results.c_str());
  const End& end = report.run.end;
  if (end.exit_code == 0 && end.cause == Cause::exited) return kSucceeded;
  std::fprintf(stderr, "benchsand: the program did not succeed (%s); what it would have called is not in the profile\n",
               to_text(end.cause));
  return kFailed;
}

Result<int> bundle(const Options& options) {
  say(TRY(write_task_bundle(options.task, facts_without_a_run(options.engine), options.bundle)));
  return kSucceeded;
}

Result<int> limits(const Options& options) {
  std::vector<Profile> profiles;
  for (const auto& name :
       options.profile.empty() ? builtin_profile_names() : std::vector<std::string>{options.profile}) {
    const auto text = TRY(find_profile(name));
    profiles.push_back(TRY(parse_profile(text.text, text.name)));
  }
  if (options.markdown)
    say(limits_markdown(profiles));
  else
    for (std::size_t i = 0; i < profiles.size(); ++i) say((i == 0 ? "" : "\n") + limits_table(profiles[i]));
  return kSucceeded;
}

PlotStyle plot_style(bool ascii) {
  winsize size{};
  const bool terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); locale.empty() && value) locale = value;
  const bool utf8 = locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  return {terminal ? size.ws_col : PlotStyle{}.width, ascii || !utf8};
}

// The verdict of a record, as `run` printed it; from the record alone, long after the run.
Result<int> verdict_of(const Options& options) {
  const auto text = sys::read_file(sys::kHere, options.record, 64 << 20);
  if (!text) return usage("read the record: " + text.error().message);
  if (nesting(*text) > kDeepestRecord)
    return usage("read the record " + options.record + ": it is nested deeper than any record of benchsand");
  const auto record = nlohmann::json::parse(*text, nullptr, false);
  if (!digest_matches(record))
    return usage("read the record " + options.record + ": it is not a record, or its digest does not match");
  try {
    if (const auto checked = check_record(record); !checked)
      return usage("read the record " + options.record + ": " + checked.error().message);
    say(verdict_table(record, ::isatty(STDOUT_FILENO) == 1));
    if (options.plot) say("\n" + plot(record, plot_style(options.ascii)));
    if (!options.page.empty()) {
      if (const auto made = sys::replace_file(options.page, html_page(record), 0644); !made)
        return usage("make the page " + options.page + ": " + made.error().message);
      say("page        " + options.page + "\n");
    }
    return record_exit_status(record);
  } catch (const std::exception& error) {  // a key or number that no record of ours has
    return usage("read the record " + options.record + ": it has not the form of a record (" + error.what() + ")");
  }
}

// RECORD may be a container, whose record is found first.
Result<int> verdict(const Options& options) {
  auto found = TRY(find_record(options.record));
  for (const auto& note : found.notes) std::fprintf(stderr, "benchsand: %s\n", note.c_str());
  Options there = options;
  there.record = std::move(found.path);
  return verdict_of(there);
}

Result<int> records(const Options&) {
  say(record_list(TRY(TRY(RecordStore::find()).list())));
  return kSucceeded;
}

Result<int> doctor(const Options& options) {
  const auto document = doctor_json(TRY(examine_host()));
  if (options.json)
    say(document.dump(2, ' ', true) + "\n");
  else
    say(doctor_table(document, ::isatty(STDOUT_FILENO) == 1));
  return document.at("able") == true ? kSucceeded : kNotScored;
}

Result<int> gc(const Options& options) {
  if (::geteuid() != 0) return fault("clear dead runs: benchsand gc must be root; use sudo");
  const auto* engines = engine_commands();
  if (engines == nullptr && an_engine_is_here())
    if (auto why = become_engines(options.arguments);
        why.error_number != ENOENT)  // not installed: nothing ran on engines
      return std::unexpected(std::move(why));
  auto lines = TRY(collect_garbage());
  for (auto& line : TRY(conformance::clear_dead_stages())) lines.push_back(std::move(line));
  if (engines != nullptr)
    for (auto& line : engines->collect()) lines.push_back(std::move(line));
  for (const auto& line : lines) say(line + "\n");
  if (lines.empty()) say("nothing to clear\n");
  return kSucceeded;
}

Result<int> install(const Options& options) {
  InstallRequest request = options.install;
  for (const auto engine : {EngineKind::docker, EngineKind::podman, EngineKind::containerd})
    if (options.for_engine == to_text(engine)) request.engine = engine;
  say(TRY(install_runtime(request)));
  return kSucceeded;
}

Result<std::string> images(const Options& options, const ImageRequest& request) {
  return request.engine ? TRY(require_engines(options))->images(request) : serve_images(request);
}

void add_install_options(CLI::App& command, Options& options) {
  command.add_option("ENGINE", options.for_engine, "docker, podman or containerd")
      ->required()
      ->check(CLI::IsMember({"docker", "podman", "containerd"}));
  command.add_flag("--uninstall", options.install.uninstall, "take out what install put in");
  command.add_option("--config", options.install.config, "the engine's file, if it is not where its package has it");
  command.add_option("--runtime", options.install.runtime, "benchsand-runtime, if it is not beside this program");
  command.add_flag("--dry-run", options.install.dry_run, "only print what would change");
}

void add_task_options(CLI::App& command, Options& options, const std::vector<std::string>& engines) {
  command.add_option("TASK.yaml", options.task.task_path, "the task to run")->required();
  command.add_option("--profile", options.profile, "a profile's name, or the path of one (it must hold a '/')");
  command.add_option("--set", options.settings, "change one limit: --set limits.memory=64MiB")->allow_extra_args(false);
  std::string names;
  for (const auto& engine : engines) names += (names.empty() ? "" : ", ") + engine;
  command.add_option("--engine", options.engine, "who makes the container: " + names + "; crun, if nobody is named")
      ->check(CLI::IsMember(engines));
}

int complain_of_command(const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "no command was given" : "unknown command '" + words.front() + "'";
  return complain(
      Error{Error::Kind::usage, what + "; the commands are run, check, bundle, learn, verdict, records, "
                                       "limits, doctor, gc, image, install and completion (see benchsand --help)"});
}

int complain_of_use(const CLI::App& app, std::string what) {
  while (what.ends_with('.') || what.ends_with('\n')) what.pop_back();
  const auto commands = app.get_subcommands();
  const std::string command = commands.empty() ? "" : " " + commands.front()->get_name();
  return complain(Error{Error::Kind::usage, what + "; see benchsand" + command + " --help"});
}

int main_of(int argc, char** argv) {
  CLI::App app(
      "Runs code that nobody trusts, observes from the host that every wall stood, and gives a score only then.",
      "benchsand");
  app.set_version_flag("--version", std::string("benchsand ") + BENCHSAND_VERSION);
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.footer(
      "Examples:\n"
      "  benchsand run task.yaml                                  walls and verdict; results in ./benchsand-results\n"
      "  benchsand run task.yaml --set limits.memory=64MiB --json the record alone\n"
      "  benchsand check task.yaml                                the policy, decided; nothing runs\n"
      "  benchsand learn task.yaml --profile strict > mine.yaml   the system calls that a trusted program needs\n"
      "  benchsand limits --profile python                        what a task may ask for\n"
      "Exit status of run: 0 succeeded, 1 scored but failed or at a limit, 124 at a time limit,\n"
      "2 usage or bad task, 3 not scored.");
  Options options;
  options.arguments = argv;
  int status = kSucceeded;
  const auto add = [&](const char* name, const char* help, Result<int> (*action)(const Options&)) {
    CLI::App* command = app.add_subcommand(name, help);
    command->allow_extras(false);  // only so that an unknown command can be named
    command->callback([&options, &status, action] {
      const auto ready = finish_request(options);
      const auto done = ready ? action(options) : Result<int>(std::unexpected(ready.error()));
      status = done ? *done : complain(done.error());
    });
    return command;
  };
  CLI::App* run_command = add("run", "run a task and judge it", run);
  const std::vector<std::string> delegates = {"crun", "runc"}, engines = {"crun", "runc", "docker", "podman"};
  add_task_options(*run_command, options, engines);
  run_command->add_option("--out", options.results, "where results go (default ./benchsand-results)");
  run_command->add_flag("--without-shim", options.without_shim,
                        "docker, podman: with the engine's own runtime, where fewer walls can be observed");
  run_command->add_flag("--json", options.json, "print the record alone");
  run_command->add_flag("--quiet", options.quiet, "print nothing on stdout");
  add_task_options(*add("check", "parse a task, decide and print its policy; run nothing", check), options, engines);
  CLI::App* learn_command =
      add("learn", "run a trusted program without refusals and print the profile it needed", learn);
  add_task_options(*learn_command, options, delegates);
  learn_command->add_option("--out", options.learned_results, "keep the results of the run in this folder");
  CLI::App* bundle_command = add("bundle", "write an OCI bundle for a task; run nothing", bundle);
  add_task_options(*bundle_command, options, delegates);
  bundle_command->add_option("DIR", options.bundle, "where the bundle goes")->required();
  CLI::App* limits_command = add("limits", "the limits of the profiles, as they are enforced", limits);
  limits_command->add_option("--profile", options.profile, "one profile only");
  limits_command->add_flag("--markdown", options.markdown, "as a page of docs/");
  CLI::App* verdict_command = add("verdict", "print the verdict of a record again", verdict);
  verdict_command
      ->add_option("RECORD", options.record,
                   "a record or folder that run wrote; or a run by its id, or a container by id or name")
      ->required();
  verdict_command->add_flag("--plot", options.plot, "draw the timeline below it");
  verdict_command->add_flag("--ascii", options.ascii,
                            "draw it without braille; so it is where the locale is not UTF-8");
  verdict_command->add_option("--html", options.page, "write it as one page with walls, evidence and timeline");
  add("records", "list the records of containers, the newest first", records);
  add("doctor", "try what this host can enforce and observe; what is missing, and its cure", doctor)
      ->add_flag("--json", options.json, "as a document (docs/doctor.md)");
  conformance::add_command(app, argv, [&](const Result<int>& done) { status = done ? *done : complain(done.error()); });
  add("gc", "clear what killed runs left behind", gc);
  add_install_options(*add("install", "make the runtime known to a container engine, or take it out again", install),
                      options);
  add_image_commands(app, [&](const ImageRequest& request) {
    const auto text = images(options, request);
    if (text) say(*text);
    status = text ? kSucceeded : complain(text.error());
  });
  CLI::App* completion_command = app.add_subcommand("completion", "print a script by which a shell completes commands");
  completion_command->add_option("SHELL", options.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion_command->callback([&] {
    const auto script = completion(command_tree(app), options.shell);
    status = script ? kSucceeded : complain(script.error());
    if (script) say(*script);
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    return complain_of_use(app, error.what());
  }
  if (app.get_subcommands().empty()) return complain_of_command(app.remaining());
  return status;
}

}  // namespace
}  // namespace benchsand

// A shell's soft limit on descriptors, file sizes or memory is no reason to fail half-way through a run.
static void widen_limits() {
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == limit.rlim_max) continue;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(resource, &limit);
  }
}

int main(int argc, char** argv) {
  widen_limits();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);  // a caller that ignores it would take our children's exit statuses away
  return benchsand::main_of(argc, argv);
}
