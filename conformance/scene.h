// One sandbox in which the probe attempts what it is asked to, whole or with walls taken down.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/judge.h"
#include "conformance/stage.h"
#include "oci/engine_endpoint.h"
#include "shim/load.h"

namespace benchsand::conformance {

struct SceneOrder {
  std::vector<std::string> verbs;
  std::vector<Relaxation> down;
  std::vector<Setting> limits;
  bool watch = false;                  // who opens the planted file
  bool grant = false;                  // its folder is an input
  std::optional<ApiKind> engine = {};  // that makes the container; absent: the delegate alone
  bool without_shim = false;
  std::vector<std::string> look_for = {};  // in the output, of a container of the engine's own
  std::string deadline_ms = {};            // of each attempt; empty: as the probe has it
  std::string programs = {};               // a root file system in place of the stage's, which has more than the probe
};

// What such a sandbox runs, as a task in the stage.
Result<TaskRequest> scene_task(const Stage& stage, const std::string& profile, const SceneOrder& order);

// The limits with which hundreds of attempts fit into one sandbox.
std::vector<Setting> room_for_many();

// Never an error: what could not be done is in the result, and no case of it passes.
SceneResult run_scene(const Host& host, const Stage& stage, const std::string& profile, const SceneOrder& order);

}  // namespace benchsand::conformance
