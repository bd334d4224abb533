// A value in a JSON document by the names on the way to it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace benchsand {

// "/State/Pid"; null where there is none. By names alone: a pointer of the JSON library also reads numbers, with errno, which oci/ does not have.
const nlohmann::json& json_at(const nlohmann::json& document, const std::string& path);

}  // namespace benchsand
