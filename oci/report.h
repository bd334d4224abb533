// What a person reads after a run: a short table of the walls, and the verdict.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace benchsand {

// Text that may hold what a candidate chose (names, messages), for a terminal: control characters, line breaks and
// marks that turn the direction of writing are shown as escapes, so that nobody can forge a line or hide one.
std::string on_one_line(const std::string& text);

// What one wall's line says.
struct WallLine {
  enum class State { held, stood, broken, not_observed };  // stood: at a door that did not open
  std::string wall;
  State state = State::not_observed;
  std::vector<std::string> words;  // one summary, or every failure
};
const char* to_text(WallLine::State state);
std::vector<WallLine> wall_lines(const nlohmann::json& record);  // throws on what is no record of ours, as all here

struct Headline {
  std::string score;  // "SCORED" or "NOT SCORED"
  std::string why;
};
Headline headline(const nlohmann::json& record);

// `colour` only on a terminal.
int record_exit_status(const nlohmann::json& record);  // what `run` ended with
std::string verdict_table(const nlohmann::json& record, bool colour);

}  // namespace benchsand
