// Whose an object in an engine's store is: labels with the run's id and the process that made it. The process is named by number
// and start time, so that a number that was given anew is not taken for it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kRunLabel = "benchsand.run";

Result<std::map<std::string, std::string>> owner_labels(const std::string& run);

// Of a container, as its engine shows it: the run that its label names; empty: it has none.
std::string run_of(const nlohmann::json& inspect);

enum class OwnerIs { alive, dead, unknown };  // unknown: the labels are not ours, or not whole
OwnerIs owner_of(const nlohmann::json& labels);

}  // namespace benchsand
