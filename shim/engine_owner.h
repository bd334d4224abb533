// Whose an object in an engine's store is: labels with the run's id and the process that made it. The process is named by number
// and start time, so that a number that was given anew is not taken for it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "oci/engine_endpoint.h"
#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kRunLabel = "benchsand.run";

Result<std::map<std::string, std::string>> owner_labels(const std::string& run);

std::string container_name(const std::string& run);
bool has_name_of_run(const std::string& container, const nlohmann::json& labels);

// An engine may answer with the id of another's container, of which nothing is to be started, recorded or removed: an error,
// unless what it shows for the id has the label of this run.
Result<void> require_run(ApiKind kind, const std::string& id, const nlohmann::json& inspect, const std::string& run);

enum class OwnerIs { alive, dead, unknown };  // unknown: the labels are not ours, or not whole
OwnerIs owner_of(const nlohmann::json& labels);

}  // namespace benchsand
