// Scenes in containers that Docker or Podman makes by itself: the same probe and the same verbs, without a policy and without a
// record. What the host can see of one is put into the places that a record has for it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "conformance/scene.h"
#include "conformance/sink.h"
#include "shim/default_containers.h"

namespace benchsand::conformance {

class DefaultScenes {
 public:
  static Result<DefaultScenes> make(ApiKind engine, const Stage& stage);
  nlohmann::json delegate() const;  // name, version: the engine's runtime, and the engine
  // Never an error, as run_scene.
  SceneResult play(const SceneOrder& order);

 private:
  DefaultScenes(ApiKind engine, const Stage& stage, DefaultContainers containers)
      : engine_(engine), stage_(stage), containers_(std::move(containers)) {}
  Result<void> attempt(const SceneOrder& order, SceneResult& scene);
  Result<void> attempt_in(const SceneOrder& order, bool joins, SceneResult& scene);
  Result<bool> has_way_out();
  Result<void> prepare_network();

  ApiKind engine_;
  const Stage& stage_;
  DefaultContainers containers_;
  std::optional<DefaultNetwork> network_;
  std::optional<Sink> sink_;
};

}  // namespace benchsand::conformance
