// /etc/benchsand/runtime.yaml: what the owner of a host decides for benchsand-runtime.
#pragma once

#include <optional>
#include <string>

#include "oci/result.h"

namespace benchsand {

struct RuntimeSettings {
  std::optional<std::string> delegate;  // crun or runc; none: crun where it fits this host, else runc
};

Result<RuntimeSettings> parse_runtime_settings(const std::string& text, const std::string& source);

// The profile that a program of this name stands for: `benchsand` and `benchsand-runtime` are strict, `benchsand-NAME` is NAME.
// By the name alone: an environment belongs to the caller.
Result<std::string> profile_of_program(const std::string& argv0);

inline constexpr const char* kPassthrough =
    "passthrough";  // no walls and no record: for the delegates' own test-suites

}  // namespace benchsand
