// What both judges of cases need (judge.cc, judge_defaults.cc): the words of a scene, the record's places, the control.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/judge.h"

namespace benchsand::conformance {

struct Verdicted {
  CaseVerdict verdict;
  std::string reason;
};
Verdicted unknown(std::string reason);

bool stands_in(const std::string& word, const std::vector<std::string>& list);
// Somebody says no, whatever the layer.
bool is_denial(const std::string& outcome);
std::optional<std::string> outcome_of(const Case& one, const SceneResult& scene);
std::string detail_of(const Case& one, const SceneResult& scene);
bool has_word(const std::string& detail, const std::string& word);

// By a place of HostFact; nothing where the record has no such place.
std::optional<std::string> recorded(const nlohmann::json& record, const std::string& place);
bool agrees(const HostFact& fact, const std::string& seen);

// Of its own attempts, where it has some, the first.
std::optional<std::string> control_outcome(const Case& one, const SceneResult& control);
std::string control_text(const Control& control);
// Nothing: it flipped.
std::optional<Verdicted> judge_control(const Case& one, const SceneResult& control, const std::string& inside);
// It came to the same, and neither another attempt nor the host tells the two apart.
bool shows_no_difference(const Case& one, const SceneResult& control, const std::string& inside);

}  // namespace benchsand::conformance
