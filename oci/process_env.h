// The environment that an engine gives a process, of a container or of an exec.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "oci/admit.h"

namespace benchsand {

struct ScrubbedEnv {
  std::map<std::string, std::string> kept;
  std::vector<Edit> edits;
  std::vector<Refused> refusals;
};

// `keep_home`: the engine's HOME is that of the user the process will have.
ScrubbedEnv scrub_env(const std::vector<std::string>& env, bool keep_home);

}  // namespace benchsand
