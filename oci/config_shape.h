// What benchsand knows of config.json: every field of runtime-spec 1.3 that a Linux runtime looks at, and of what kind it is.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oci/result.h"

namespace benchsand {

// Checks a document, or the part of one that `part` names ("" a config.json, "/process" the process of an exec,
// "/linux/resources" those of an update). Kind usage, all problems at once: a known field of another kind, a number that is
// no integer, a key that differs from a known one in case alone (Go takes it for the known one).
// `unknown` receives the pointers of the fields that are none of the known.
Result<void> check_config_shape(const nlohmann::json& document, const std::string& part, const std::string& name,
                                std::vector<std::string>& unknown);

}  // namespace benchsand
