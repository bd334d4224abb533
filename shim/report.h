// What a person reads after a run: a short table of the walls, and the verdict.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace benchsand {

// `colour` only on a terminal.
std::string verdict_table(const nlohmann::json& record, bool colour);

}  // namespace benchsand
