// The body of an engine's create call for a container that is the engine's own in everything: what is not named here, it decides.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oci/engine_endpoint.h"

namespace benchsand {

// What a hostile program may use of a host while it is shown that nothing else holds it.
inline constexpr std::uint64_t kBoundProcesses = 512, kBoundMemory = 1U << 30;

struct DefaultBody {
  std::string name, image;
  std::string runtime;  // empty: the engine's default
  std::vector<std::string> command;
  std::map<std::string, std::string> labels;
  std::string
      cgroup_parent;   // has the bounds; empty: the engine takes no such parent, and the container itself has them
  bool alone = false;  // without a network
  std::string joins;   // the id of a container, whose network it has too
};

nlohmann::json default_body(ApiKind kind, const DefaultBody& wanted);

}  // namespace benchsand
