// JSON of others. Go's reader takes the last of two equal keys and does not tell "Mounts" from "mounts", a C reader does
// otherwise: a document that two readers understand differently is refused before anything is decided about it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "oci/result.h"

namespace benchsand {

inline constexpr std::size_t kDeepestJson = 64;
inline constexpr std::size_t kLargestJson = std::size_t{4} << 20;

// `name` is what messages call the document ("config.json"). Refused, with the JSON pointer of the place: a key that stands
// twice in one object, more than kDeepestJson levels, more than kLargestJson bytes, a number that no 64 bits hold, what is no
// JSON. A member that is null is left out, as engines write it for "not there".
Result<nlohmann::json> parse_strict_json(const std::string& text, const std::string& name);

// A token of a JSON pointer: "a/b" is written "a~1b".
std::string pointer_token(const std::string& key);

// As Go compares keys: ASCII without case, and the two letters beyond it that fold into it.
std::string folded(const std::string& key);

}  // namespace benchsand
