// What the host observed: one value per key, with the file or call it was read from, or the reason why it is missing.
// There is no default value: an observation that was not made is Missing, and a wall that needs it does not hold.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "oci/result.h"

namespace benchsand {

using Value = std::variant<std::uint64_t, std::string>;
std::string to_text(const Value& value);

struct Missing {
  std::string why;
};

struct Observation {
  std::variant<Missing, Value> seen = Missing{"not observed"};
  std::string source;  // "/sys/fs/cgroup/memory/…/memory.limit_in_bytes"

  const Value* value() const { return std::get_if<Value>(&seen); }
};

// Keys are "wall.name" or, read a second time after the end, "wall.name.end"; walls.h lists every key that may stand here.
class Evidence {
 public:
  // A key is set once. A second, different value is a contradiction and makes the key Missing.
  void set(const std::string& key, Value value, const std::string& source);
  void missing(const std::string& key, const std::string& why, const std::string& source);
  void remove(const std::string& key) { observations_.erase(key); }  // tests withhold one at a time
  void replace(const std::string& key, Observation observation);     // tests falsify one at a time

  // The value of a Result, or Missing with its error.
  template <class T>
  void take(const std::string& key, const Result<T>& result, const std::string& source) {
    if (result)
      set(key, Value(*result), source);
    else
      missing(key, result.error().message, source);
  }

  const Observation* find(const std::string& key) const;
  const std::map<std::string, Observation>& all() const { return observations_; }

 private:
  std::map<std::string, Observation> observations_;
};

}  // namespace benchsand
