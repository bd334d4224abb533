#include "oci/process_env.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "oci/yaml_tree.h"

namespace benchsand {

namespace {

// What these point at does not exist inside, or must not.
constexpr std::array<std::string_view, 3> kPassedDescriptors{"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"};

bool passes_descriptors(const std::string& name) {
  return std::find(kPassedDescriptors.begin(), kPassedDescriptors.end(), name) != kPassedDescriptors.end();
}

}  // namespace

ScrubbedEnv scrub_env(const std::vector<std::string>& env, bool keep_home) {
  ScrubbedEnv result;
  for (std::size_t i = 0; i < env.size(); ++i) {
    const std::string field = "/process/env/" + std::to_string(i);
    const std::size_t equals = env[i].find('=');
    const std::string name = env[i].substr(0, equals);
    const auto drop = [&](const std::string& why) {
      result.edits.push_back({field, in_quotes(name), why, "privileges"});
    };
    if (equals == std::string::npos || name.empty()) {
      drop("left out: no NAME=VALUE");
    } else if (passes_descriptors(name)) {
      result.refusals.push_back({"privileges", "the environment has " + name + ", which hands in open descriptors",
                                 "start it without socket activation, with " + name + " unset"});
    } else if (name == "NOTIFY_SOCKET") {
      drop("left out: nothing outside can be notified");
    } else if (name == "HOME" && !keep_home) {
      drop("the output directory: it belonged to another user");
    } else {
      // Where a name stands twice, C programs see the first and the delegates keep the last; here there is one.
      if (result.kept.contains(name)) drop("the later one of two holds");
      result.kept[name] = env[i].substr(equals + 1);
    }
  }
  return result;
}

}  // namespace benchsand
