// /etc/benchsand/runtime.yaml: what the operator sets for containers of engines. Every key may be left out, and so may the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "oci/result.h"

namespace benchsand {

// Which records of containers stay; the newest always does.
struct RecordKeeping {
  std::uint64_t records = 1000, days = 90;
};

struct RuntimeSettings {
  std::optional<std::string> delegate;  // crun or runc; absent: crun where it fits, else runc
  RecordKeeping keep;
};

// `name` is what messages call the file. Kind usage.
Result<RuntimeSettings> parse_runtime_settings(const std::string& text, const std::string& name);

// The profile that a program of this name stands for: `benchsand` and `benchsand-runtime` are strict, `benchsand-NAME` is NAME.
// By the name alone: an environment belongs to the caller.
Result<std::string> profile_of_program(const std::string& argv0);

inline constexpr const char* kPassthrough =
    "passthrough";  // no walls and no record: for the delegates' own test-suites

}  // namespace benchsand
