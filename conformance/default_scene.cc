#include "conformance/default_scene.h"

#include <algorithm>
#include <iterator>

#include "conformance/judge_defaults.h"
#include "shim/engine_commands.h"

namespace benchsand::conformance {

using nlohmann::json;

namespace {

constexpr std::uint64_t kWholeScene = 300'000'000;

std::vector<std::string> command_of(const SceneOrder& order) {
  std::vector<std::string> command = {"/probe"};
  if (!order.deadline_ms.empty()) command.insert(command.end(), {"--deadline", order.deadline_ms});
  command.insert(command.end(), order.verbs.begin(), order.verbs.end());
  return command;
}

json observed(const json& value) {
  return {{"observed", value}};
}

// In the places where a record has it. What has no place here was not seen.
void note(const DefaultEnd& end, const std::string& folder, json& record) {
  record["end"]["cause"] = !end.in_time ? "deadline" : end.out_of_memory ? "memory" : "exited";
  record["stdout"] = {{"kept", end.output.size()}, {"bytes", end.output.size()}};
  record["stderr"] = {{"kept", end.error_bytes}, {"bytes", end.error_bytes}};
  record["outputs"] = json::array();
  for (const auto& path : end.found) record["outputs"].push_back({{"path", path.substr(folder.size())}});
  json& evidence = record["evidence"];
  evidence["spent"]["wall-time"]["used_us"] = observed(end.wall_us);
  if (end.written) evidence["spent"]["output"]["bytes_used"] = observed(*end.written);
  if (end.populated) evidence["after"]["teardown"]["populated"] = observed(*end.populated ? 1 : 0);
}

}  // namespace

Result<DefaultScenes> DefaultScenes::make(ApiKind engine, const Stage& stage) {
  const auto* engines = engine_commands();
  if (engines == nullptr) return fault(std::string("call ") + to_text(engine) + ": this program has no engines");
  return DefaultScenes(engine, stage,
                       TRY(DefaultContainers::of(TRY(engines->default_engine(engine, stage.path("rootfs"))))));
}

json DefaultScenes::delegate() const {
  return {{"name", containers_.engine().runtime()},
          {"version", std::string("of ") + to_text(engine_) + " " + containers_.engine().version()}};
}

Result<bool> DefaultScenes::has_way_out() {
  if (!network_) network_ = TRY(containers_.look_at_network());
  return network_->links != "lo" || network_->routes != "none";
}

Result<void> DefaultScenes::prepare_network() {
  if (!sink_) sink_.emplace(TRY(Sink::make_in(TRY(containers_.wait_for_others()))));
  return {};
}

Result<void> DefaultScenes::attempt_in(const SceneOrder& order, bool joins, SceneResult& scene) {
  const std::string folder = "/output/";
  DefaultOrder wanted;
  wanted.command = command_of(order);
  wanted.joins = joins;
  wanted.within_us = kWholeScene;
  for (const auto& name : order.look_for) wanted.look_for.push_back(folder + name);
  const auto end = TRY(containers_.run(wanted));
  note(end, folder, scene.record);
  read_told(end.output, order.verbs, scene);
  return {};
}

// What would leave the host is attempted where it cannot: in the suite's own network, if a container of the engine's has a way out.
Result<void> DefaultScenes::attempt(const SceneOrder& order, SceneResult& scene) {
  std::optional<OpenWatch> watch;
  if (order.watch) watch.emplace(TRY(OpenWatch::on(stage_.planted())));
  SceneOrder inner = order, outer = order;
  std::erase_if(inner.verbs, leaves_the_host);
  std::erase_if(outer.verbs, [](const std::string& verb) { return !leaves_the_host(verb); });
  if (!inner.verbs.empty()) TRY_VOID(attempt_in(inner, false, scene));
  if (watch) scene.opened = TRY(watch->opened());
  if (outer.verbs.empty()) return {};
  const bool joins = TRY(has_way_out());
  if (joins) TRY_VOID(prepare_network());
  SceneResult others;
  TRY_VOID(attempt_in(outer, joins, others));
  scene.whole = others.whole && (inner.verbs.empty() || scene.whole);
  scene.told.merge(others.told);
  scene.record["network"] = {{"links", network_->links}, {"routes", network_->routes}};
  if (!joins) return {};
  const Reached reached = TRY(sink_->reached());
  scene.record["sink"] = {{"connections", reached.connections}, {"datagrams", reached.datagrams}};
  return {};
}

SceneResult DefaultScenes::play(const SceneOrder& order) {
  SceneResult scene;
  if (const auto attempted = attempt(order, scene); !attempted) scene.fault = attempted.error().message;
  return scene;
}

}  // namespace benchsand::conformance
