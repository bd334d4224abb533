// A further process that an engine starts in a container. Docker and Podman build it from the document that they wrote, not from
// the one that the container was made of: what admit took away is all there again.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oci/admit.h"

namespace benchsand {

struct ExecAdmission {
  nlohmann::json process;  // for the delegate
  bool terminal = false;
  std::vector<Edit> edits;  // pointers as in a config.json: "/process/user"
  std::vector<Refused> refusals;
};

// `limits_at_the_door`: benchsand sets the rlimits itself, as for the container's first process.
// An error (kind usage) only for a text that cannot be read as a process.
Result<ExecAdmission> admit_exec(const std::string& process_text, const Policy& policy, bool limits_at_the_door);

}  // namespace benchsand
