#include "oci/without_runtime.h"

#include <algorithm>

namespace benchsand {

namespace {

std::string wall_of(const std::string& key) {
  return key.substr(0, key.find('.'));
}

}  // namespace

const std::vector<std::string>& unobservable_keys() {
  // Nobody answers for refused calls and for execs, so nobody counts them. The root file system is one that the engine put
  // together. Its config.json and its runtime's binary are its own.
  static const std::vector<std::string> keys = {
      "network.refused_sockets",  "rootfs.source_identity", "rootfs.identity",        "privileges.exec",
      "syscalls.refused_calls",   "syscalls.exec",          "evidence.config_sha256", "evidence.config_sha256.end",
      "evidence.delegate_sha256", "evidence.delegate_exit", "evidence.execs",
  };
  return keys;
}

const std::vector<std::string>& unobservable_walls() {
  static const std::vector<std::string> walls = [] {
    std::vector<std::string> list;
    for (const auto& key : unobservable_keys())
      if (std::find(list.begin(), list.end(), wall_of(key)) == list.end()) list.push_back(wall_of(key));
    return list;
  }();
  return walls;
}

void take_plain(Policy& policy) {
  if (policy.plain) return;
  policy.plain = true;
  policy.seccomp.uncounted = true;
  if (policy.without_runtime.empty()) return;
  std::string walls;
  for (const auto& wall : policy.without_runtime) walls += (walls.empty() ? "" : ", ") + wall;
  policy.relaxations.push_back("without_runtime: what only benchsand's runtime can observe of " + walls);
  policy.relaxations.push_back("without_runtime: /proc is writable, and the engine's files may stand in /etc and /run");
}

bool is_forgiven(const Rule& rule, const Observation* observation) {
  const auto* missing = observation ? std::get_if<Missing>(&observation->seen) : nullptr;
  return rule.may_be_unobserved && missing && missing->why == kNotWithoutRuntime;
}

void forgive_unobserved(const Policy& policy, std::vector<Rule>& rules) {
  if (!policy.plain) return;
  const auto contains = [](const std::vector<std::string>& list, const std::string& text) {
    return std::find(list.begin(), list.end(), text) != list.end();
  };
  for (auto& rule : rules) {
    if (!contains(unobservable_keys(), rule.key) || !contains(policy.without_runtime, rule.wall)) continue;
    rule.may_be_unobserved = true;
  }
}

}  // namespace benchsand
