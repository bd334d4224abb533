// A run with walls taken down by name, which nothing that is installed can do: the next wall has to stand by itself.
// usage: relaxed TASK.yaml --profile PATH --engine crun|runc --out DIR [--relax NAME]...
// Prints the record. Such a run is never scored, so its exit status is 3 like that of any refused run.
#include <csignal>
#include <cstdio>

#include "oci/relaxation.h"
#include "shim/run.h"

namespace benchsand {
namespace {

struct Options {
  TaskRequest task;
  std::string engine = "crun", results = "benchsand-results";
  std::vector<Relaxation> relaxations;
};

Result<Relaxation> relaxation_named(const std::string& name) {
  for (const Relaxation relaxation : kRelaxations)
    if (name == to_text(relaxation)) return relaxation;
  return usage("--relax " + name + ": no such relaxation");
}

Result<Options> parse(int argc, char** argv) {
  Options options;
  if (argc < 2 || argc % 2 != 0) return usage("relaxed TASK.yaml [--NAME VALUE]...");
  options.task.task_path = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--profile")
      options.task.profile = value;
    else if (name == "--engine")
      options.engine = value;
    else if (name == "--out")
      options.results = value;
    else if (name == "--relax")
      options.relaxations.push_back(TRY(relaxation_named(value)));
    else
      return usage(name + ": no such option");
  }
  return options;
}

Result<int> run(int argc, char** argv) {
  const Options options = TRY(parse(argc, argv));
  const auto host = TRY(require_host(options.engine));
  auto policy = TRY(load_policy(options.task, host.facts));
  for (const Relaxation relaxation : options.relaxations) take_down(policy, relaxation);
  const auto report = TRY(run_task(host, std::move(policy), options.results));
  std::puts(report.record.dump(2, ' ', true).c_str());
  return exit_status(report.verdict, report.end);
}

}  // namespace
}  // namespace benchsand

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const auto done = benchsand::run(argc, argv);
  if (done) return *done;
  std::fprintf(stderr, "relaxed: %s\n", done.error().message.c_str());
  return 3;
}
