#include "oci/record_check.h"

#include <charconv>
#include <optional>
#include <set>
#include <string>

#include "oci/walls.h"
#include "oci/without_runtime.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr const char* kSections[] = {"established", "spent", "after"};

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Of the forms in which walls.cc says what it expects, those that need no other observation.
bool contradicts(const std::string& expected, const json& observed) {
  if (observed.is_null()) return true;
  if (const auto exactly = number_in(expected)) return observed != *exactly && observed != expected;
  const std::string at_most = "at most ";
  if (!expected.starts_with(at_most) || !observed.is_number_unsigned()) return false;
  const auto most = number_in(expected.substr(at_most.size()));
  return most && observed.get<std::uint64_t>() > *most;
}

bool is_forgiven(const json& observation) {
  return observation.value("forgiven", "") == kForgiven && observation.value("missing", "") == kNotWithoutRuntime;
}

// The first observation that its wall cannot have held with, or a wall that nothing was observed of.
std::string broken_evidence(const json& evidence) {
  std::set<std::string> observed;
  for (const char* section : kSections)
    for (const auto& [wall, observations] : evidence.at(section).items()) {
      for (const auto& [name, observation] : observations.items())
        if (!is_forgiven(observation) && contradicts(observation.at("expected"), observation.at("observed")))
          return wall + "." + name + " was expected " + observation.at("expected").dump() + " and observed " +
                 observation.at("observed").dump();
      if (!observations.empty()) observed.insert(wall);
    }
  for (const auto& wall : wall_names())
    if (!observed.contains(wall)) return "nothing was observed of the wall " + wall;
  return "";
}

std::string outcome_due(const json& end) {
  const std::string cause = end.at("cause");
  if (cause == "exited" && end.at("exit_code").is_number()) return end.at("exit_code") == 0 ? "succeeded" : "failed";
  if (cause == "signaled" && end.at("signal").is_number()) return "failed";
  for (const char* cap : {"cpu-time", "wall-time", "memory", "output", "refusals"})
    if (cause == cap) return "limit";
  return "fault";
}

std::string scored_without_ground(const json& record) {
  const json& verdict = record.at("verdict");
  if (!verdict.at("failures").empty()) return "it is scored and names broken walls";
  if (verdict.at("tier") != "reproducible") return "no run has the tier " + verdict.at("tier").dump();
  if (verdict.at("outcome") != outcome_due(record.at("end")))
    return "the outcome " + verdict.at("outcome").dump() + " does not follow from the end " + record.at("end").dump();
  return broken_evidence(record.at("evidence"));
}

}  // namespace

std::size_t nesting(const std::string& text) {
  std::size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      in_string = !in_string;
    else if (!in_string && (text[i] == '[' || text[i] == '{'))
      deepest = std::max(deepest, ++depth);
    else if (!in_string && (text[i] == ']' || text[i] == '}') && depth > 0)
      --depth;
  }
  return deepest;
}

Result<void> check_record(const json& record) {
  const json& verdict = record.at("verdict");
  std::string why;
  if (record.at("schema") != "benchsand.record/v1")
    why = "the schema " + record.at("schema").dump() + " is another one";
  else if (verdict.at("scored") == true)
    why = scored_without_ground(record);
  else if (!verdict.at("tier").is_null() || (verdict.at("outcome") != "refused" && verdict.at("outcome") != "fault"))
    why = "a run without a score has no tier, and the outcome refused or fault";
  if (why.empty()) return {};
  return usage("its verdict does not follow from its evidence: " + why);
}

}  // namespace benchsand
