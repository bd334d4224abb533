// What an engine's API answers, as texts: its errors in its own words, and the versions it speaks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oci/engine_endpoint.h"

namespace benchsand {

inline constexpr std::size_t kLongestEngineWords = 600;

// The message of an error: {"message"} of Docker, {"cause", "message"} of Podman; else the body, or that there is none. On one
// line, without what a terminal would take for a command.
std::string engine_words(const std::string& body);

// Docker's versions are asked for by name: the oldest that has all that is used, and the newest that was looked at.
inline constexpr const char* kOldestDockerApi = "1.41";
inline constexpr const char* kNewestDockerApi = "1.51";
// Podman's prefix of a path. Podman 4 and 5 both answer to it.
inline constexpr const char* kPodmanApi = "4.0.0";

struct AgreedVersion {
  std::string engine;  // 20.10.24
  std::string api;     // Docker: the one to call by; Podman: its own
};
// From the answer to GET /version, or to Podman's own. `where` is the endpoint, for messages.
Result<AgreedVersion> agree_on_version(ApiKind kind, const nlohmann::json& answer, const std::string& where);

}  // namespace benchsand
