#include "conformance/scene.h"

#include <algorithm>

#include "conformance/sink.h"
#include "shim/engine_commands.h"
#include "shim/run.h"

namespace benchsand::conformance {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestTold = 4 << 20;

// A folder that every distribution has and leaves empty.
constexpr const char* kProbeAmongPrograms = "/srv";

json input_of(const std::string& source, const std::string& target) {
  return json::array({{{"source", source}, {"target", target}}});
}

// YAML reads JSON.
std::string task_text(const Stage& stage, const SceneOrder& order) {
  const bool own = order.programs.empty();
  json command = json::array({own ? "/probe" : kProbeAmongPrograms + std::string("/probe")});
  if (!order.deadline_ms.empty()) command.insert(command.end(), {"--deadline", order.deadline_ms});
  for (const auto& verb : order.verbs) command.push_back(verb);
  json task = {{"name", "conformance"}, {"rootfs", own ? stage.path("rootfs") : order.programs}, {"command", command}};
  if (order.grant) task["inputs"] = input_of(stage.path("planted"), stage.path("planted"));
  if (!own) task["inputs"] = input_of(stage.path("tools"), kProbeAmongPrograms);
  // The version must come first.
  return "{\"benchsand\": 1, " + task.dump().substr(1) + "\n";
}

}  // namespace

Result<TaskRequest> scene_task(const Stage& stage, const std::string& profile, const SceneOrder& order) {
  TaskRequest request;
  request.task_path = stage.path("task.yaml");
  request.profile = profile;
  request.settings = order.limits;
  TRY_VOID(sys::replace_file(request.task_path, task_text(stage, order), 0600));
  return request;
}

namespace {

Result<Policy> policy_of(const Host& host, const TaskRequest& task, const SceneOrder& order) {
  Policy policy = TRY(load_policy(task, host.facts));
  for (const Relaxation relaxation : order.down) take_down(policy, relaxation);
  // An overlay opens what is below it without telling those who watch it.
  if (order.grant) policy.rootfs_mount = RootfsMount::bind;
  return policy;
}

// The walls that were not asked to be down, and are not as they must be.
std::string broken_walls(const json& verdict, const SceneOrder& order) {
  std::string broken;
  if (!order.down.empty()) return broken;
  for (const auto& failure : verdict.at("failures"))
    broken += (broken.empty() ? "" : "; ") + failure.at("wall").get<std::string>() + ": expected " +
              failure.at("expected").get<std::string>() + ", observed " + failure.at("observed").get<std::string>();
  if (!broken.empty() || verdict.at("scored").get<bool>()) return broken;
  return "the run has no score: " + verdict.at("outcome").get<std::string>();
}

bool is_down(const SceneOrder& order, Relaxation wall) {
  return std::find(order.down.begin(), order.down.end(), wall) != order.down.end();
}

// The folder of the results. The record is in the scene.
Result<std::string> run_direct(const Host& host, const TaskRequest& task, const std::string& results,
                               const SceneOrder& order, SceneResult& scene) {
  RunHooks hooks;
  std::optional<Sink> sink;
  if (is_down(order, Relaxation::network_namespace)) {
    sink.emplace(TRY(Sink::make()));
    hooks.network_namespace = &sink->network_namespace();
  }
  const auto report = TRY(run_task(host, TRY(policy_of(host, task, order)), results, hooks));
  scene.record = report.record;
  if (!sink) return report.results;
  const Reached reached = TRY(sink->reached());
  scene.record["sink"] = {{"connections", reached.connections},
                          {"datagrams", reached.datagrams},
                          {"ipv6", TRY(sys::exists(sys::kHere, "/proc/net/if_inet6")) ? "yes" : "no"}};
  return report.results;
}

Result<std::string> run_by_engine(const TaskRequest& task, const std::string& results, const SceneOrder& order,
                                  SceneResult& scene) {
  const ApiKind engine = *order.engine;
  const auto* engines = engine_commands();
  if (engines == nullptr) return fault(std::string("call ") + to_text(engine) + ": this program has no engines");
  const auto report = TRY(engines->run({task, engine, results, order.without_shim}));
  scene.record = report.record;
  scene.counted = !order.without_shim;
  return report.results;
}

Result<void> play(const Host& host, const Stage& stage, const std::string& profile, const SceneOrder& order,
                  SceneResult& scene) {
  std::optional<OpenWatch> watch;
  if (order.watch) watch.emplace(TRY(OpenWatch::on(stage.planted())));
  const TaskRequest task = TRY(scene_task(stage, profile, order));
  const std::string place = stage.path("results");
  const std::string results =
      order.engine ? TRY(run_by_engine(task, place, order, scene)) : TRY(run_direct(host, task, place, order, scene));
  if (scene.record.at("end").at("cause") == "not-started")
    return fault("the candidate was not started: " + broken_walls(scene.record.at("verdict"), {}));
  read_told(TRY(sys::read_file(sys::kHere, results + "/stdout", kLongestTold)), order.verbs, scene);
  scene.broken_walls = broken_walls(scene.record.at("verdict"), order);
  if (watch) scene.opened = TRY(watch->opened());
  return {};
}

}  // namespace

std::vector<Setting> room_for_many() {
  return {{"limits.cpu_time", "60s"}, {"limits.wall_time", "5m"}, {"limits.stdout", "4MiB"}};
}

SceneResult run_scene(const Host& host, const Stage& stage, const std::string& profile, const SceneOrder& order) {
  SceneResult scene;
  if (const auto played = play(host, stage, profile, order, scene); !played) scene.fault = played.error().message;
  static_cast<void>(sys::remove_tree(sys::kHere, stage.path("results")));
  return scene;
}

}  // namespace benchsand::conformance
