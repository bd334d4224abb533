// Changes to a JSON text that leave every other byte of it as it was written: spaces, order, line ends.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oci/result.h"

namespace benchsand {

// `text` is one JSON document; the message says where it is not.
Result<nlohmann::json> parse_json(const std::string& text, const std::string& file);

struct JsonMember {
  std::string key;
  std::size_t key_at = 0, value_at = 0, value_end = 0;
};

// Of a text that parse_json accepted and whose first value is an object.
std::size_t json_root(const std::string& text);

// The members of the object whose bracket is at `object`, in their order, duplicates included.
std::vector<JsonMember> json_members(const std::string& text, std::size_t object);

// As the last member, on a line of its own if its neighbours have one.
std::string insert_member(const std::string& text, std::size_t object, const std::string& key,
                          const std::string& value);

// The inverse of insert_member. An object that this empties is left as `{}`.
std::string erase_member(const std::string& text, std::size_t object, const std::string& key);

}  // namespace benchsand
