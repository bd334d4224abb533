#include "shim/learn.h"

#include <optional>

#include "shim/rootfs.h"

namespace benchsand {

namespace {

Result<void> require_learning_engine(const std::string& engine) {
  if (engine == "crun") return {};
  return usage("learn with " + engine +
               ": it takes no filter that notifies every call; learn with --engine crun, the profile is good for both");
}

// What stopped a program from being learned from; empty when it ran and only the rule that no such run is scored broke.
std::string why_nothing_was_learned(const RunReport& run) {
  if (!run.end.fault.empty()) return run.end.fault;
  if (run.end.cause != Cause::not_started) return "";
  std::string why = "the container did not start as it should";
  for (const auto& failure : run.verdict.failures)
    why += "\n" + failure.wall + ": expected " + failure.expected + ", observed " + failure.observed + " (" +
           failure.source + ")";
  return why;
}

std::string profile_name(const std::string& task) {
  constexpr std::size_t kLongestName = 64;
  return ("learned-" + task).substr(0, kLongestName);
}

}  // namespace

Result<LearnReport> learn_profile(const LearnRequest& request) {
  TRY_VOID(require_learning_engine(request.engine));
  const auto documents = TRY(load_documents(request.task));
  auto policy = TRY(decide_policy(documents, host_facts(CgroupLayout::v2, {request.engine, "", ""})));
  TRY_VOID(settle_image(request.task, policy));
  policy.seccomp = learning_rules(policy.seccomp);
  policy.relaxations.emplace_back("learn: every call let run");
  TRY_VOID(check_task_files(policy));
  const auto host = TRY(require_host(request.engine));
  const auto results = request.results.empty() ? std::nullopt : std::optional(request.results);
  LearnedCalls calls;
  RunHooks hooks;
  hooks.learned = &calls;
  LearnReport report;
  report.run = TRY(run_task(host, std::move(policy), results, hooks));
  if (const std::string why = why_nothing_was_learned(report.run); !why.empty())
    return fault("learn from " + documents.task.name + ": " + why);
  report.profile =
      TRY(learned_profile(calls, documents.profile, documents.profile_text.text, profile_name(documents.task.name)));
  return report;
}

}  // namespace benchsand
