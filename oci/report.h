// What a person reads after a run: a short table of the walls, and the verdict.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace benchsand {

// Text that may hold what a candidate chose (names, messages), for a terminal: control characters, line breaks and
// marks that turn the direction of writing are shown as escapes, so that nobody can forge a line or hide one.
std::string on_one_line(const std::string& text);

// `colour` only on a terminal.
int record_exit_status(const nlohmann::json& record);  // what `run` ended with
std::string verdict_table(const nlohmann::json& record, bool colour);

}  // namespace benchsand
