// The profiles of profiles/, built into the binary (CMakeLists.txt generates the table), so that it needs no file beside it.
#pragma once

#include <span>
#include <string_view>

namespace benchsand {

struct BuiltinProfile {
  std::string_view name;
  std::string_view sha256;  // of profiles/NAME.yaml
  std::string_view text;    // the same without comments
};
extern const std::span<const BuiltinProfile> kBuiltinProfiles;

}  // namespace benchsand
