#include "conformance/scene.h"

#include <algorithm>

#include "conformance/sink.h"
#include "shim/run.h"

namespace benchsand::conformance {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestTold = 4 << 20;

// YAML reads JSON.
std::string task_text(const Stage& stage, const SceneOrder& order) {
  json command = json::array({"/probe"});
  if (!order.deadline_ms.empty()) command = {"/probe", "--deadline", order.deadline_ms};
  for (const auto& verb : order.verbs) command.push_back(verb);
  json task = {{"name", "conformance"}, {"rootfs", stage.path("rootfs")}, {"command", command}};
  if (order.grant)
    task["inputs"] = json::array({{{"source", stage.path("planted")}, {"target", stage.path("planted")}}});
  // The version must come first.
  return "{\"benchsand\": 1, " + task.dump().substr(1) + "\n";
}

Result<Policy> policy_of(const Host& host, const Stage& stage, const std::string& profile, const SceneOrder& order) {
  const std::string path = stage.path("task.yaml");
  TRY_VOID(sys::replace_file(path, task_text(stage, order), 0600));
  TaskRequest request;
  request.task_path = path;
  request.profile = profile;
  request.settings = order.limits;
  Policy policy = TRY(load_policy(request, host.facts));
  for (const Relaxation relaxation : order.down) take_down(policy, relaxation);
  // An overlay opens what is below it without telling those who watch it.
  if (order.grant) policy.rootfs_mount = RootfsMount::bind;
  return policy;
}

// The walls that were not asked to be down, and are not as they must be.
std::string broken_walls(const Verdict& verdict, const SceneOrder& order) {
  std::string broken;
  if (!order.down.empty()) return broken;
  for (const auto& failure : verdict.failures)
    broken += (broken.empty() ? "" : "; ") + failure.wall + ": expected " + failure.expected + ", observed " +
              failure.observed;
  return broken.empty() && !verdict.scored ? std::string("the run has no score: ") + to_text(verdict.outcome) : broken;
}

Result<void> play(const Host& host, const Stage& stage, const std::string& profile, const SceneOrder& order,
                  SceneResult& scene) {
  std::optional<OpenWatch> watch;
  if (order.watch) watch.emplace(TRY(OpenWatch::on(stage.planted())));
  RunHooks hooks;
  std::optional<Sink> sink;
  if (std::find(order.down.begin(), order.down.end(), Relaxation::network_namespace) != order.down.end()) {
    sink.emplace(TRY(Sink::make()));
    hooks.network_namespace = &sink->network_namespace();
  }
  const auto report = TRY(run_task(host, TRY(policy_of(host, stage, profile, order)), stage.path("results"), hooks));
  scene.record = report.record;
  if (sink) {
    const Reached reached = TRY(sink->reached());
    scene.record["sink"] = {{"connections", reached.connections}, {"datagrams", reached.datagrams}};
  }
  if (!report.end.fault.empty()) return fault(report.end.fault);
  if (report.end.cause == Cause::not_started) return fault("the candidate was not started");
  read_told(TRY(sys::read_file(sys::kHere, report.results + "/stdout", kLongestTold)), order.verbs, scene);
  scene.broken_walls = broken_walls(report.verdict, order);
  if (watch) scene.opened = TRY(watch->opened());
  return {};
}

}  // namespace

SceneResult run_scene(const Host& host, const Stage& stage, const std::string& profile, const SceneOrder& order) {
  SceneResult scene;
  if (const auto played = play(host, stage, profile, order, scene); !played) scene.fault = played.error().message;
  static_cast<void>(sys::remove_tree(sys::kHere, stage.path("results")));
  return scene;
}

}  // namespace benchsand::conformance
