// The name that a person gave a container: engines do not tell it the runtime, so it is looked for where they keep it. It is a
// label in the record, and nothing is decided by it.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

namespace benchsand {

// Docker: in config.v2.json beside the file that it mounts as /etc/hosts. Podman: in the arguments of conmon, the parent
// process. Otherwise, and when anything is not as expected, the id.
std::string container_name(const nlohmann::json& config, const std::string& id, pid_t parent);

}  // namespace benchsand
