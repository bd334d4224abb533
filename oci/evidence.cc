#include "oci/evidence.h"

namespace benchsand {

std::string to_text(const Value& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
  return std::get<std::string>(value);
}

void Evidence::set(const std::string& key, Value value, const std::string& source) {
  const auto found = observations_.find(key);
  if (found == observations_.end()) {
    observations_[key] = {std::move(value), source};
    return;
  }
  const Value* earlier = found->second.value();
  if (earlier && *earlier == value) return;
  const std::string first = earlier ? to_text(*earlier) : std::get<Missing>(found->second.seen).why;
  found->second.seen =
      Missing{"contradiction: " + first + " from " + found->second.source + ", " + to_text(value) + " from " + source};
}

void Evidence::missing(const std::string& key, const std::string& why, const std::string& source) {
  observations_[key] = {Missing{why}, source};
}

void Evidence::replace(const std::string& key, Observation observation) {
  observations_[key] = std::move(observation);
}

const Observation* Evidence::find(const std::string& key) const {
  const auto found = observations_.find(key);
  return found == observations_.end() ? nullptr : &found->second;
}

}  // namespace benchsand
