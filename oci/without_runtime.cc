#include "oci/without_runtime.h"

#include <algorithm>
#include <cstdlib>

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

WithoutRuntime why_without(ApiKind kind, bool asked_for) {
  if (asked_for) return WithoutRuntime::asked_for;
  return kind == ApiKind::docker ? WithoutRuntime::unknown_to_docker : WithoutRuntime::unknown_to_podman_service;
}

namespace {

const char* saying(WithoutRuntime why) {
  switch (why) {
    case WithoutRuntime::asked_for:
      return "--without-shim";
    case WithoutRuntime::unknown_to_docker:
      return "not known there";
    case WithoutRuntime::unknown_to_podman_service:
      return "another runtime of this service";
  }
  std::abort();  // not a value of the enumeration
}

const char* cure(WithoutRuntime why) {
  switch (why) {
    case WithoutRuntime::asked_for:
      return "leave out --without-shim";
    case WithoutRuntime::unknown_to_docker:
      return "benchsand install docker, and systemctl reload docker";
    case WithoutRuntime::unknown_to_podman_service:
      return "unset CONTAINER_HOST, and benchsand starts a service of its own; or start that one with podman --runtime "
             "benchsand system service, after benchsand install podman";
  }
  std::abort();  // not a value of the enumeration
}

// What the profile would have to say, and does not.
std::string kept_back(const Policy& policy) {
  std::string walls;
  for (const auto& wall : unobservable_walls())
    if (std::find(policy.without_runtime.begin(), policy.without_runtime.end(), wall) == policy.without_runtime.end())
      walls += (walls.empty() ? "" : ", ") + wall;
  if (walls.empty()) return "";
  return "without it " + walls + " cannot be observed whole, and the profile " + policy.profile_name +
         (policy.without_runtime.empty() ? " says without_runtime: refuse"
                                         : " does not give them away with its without_runtime");
}

}  // namespace

std::optional<Failure> refused_beforehand(const Policy& policy, WithoutRuntime why, const std::string& engine) {
  std::string reason = kept_back(policy);
  if (reason.empty() && policy.user_namespace == UserNamespace::own)
    reason = "without it an engine gives a run no ids of its own, and the profile " + policy.profile_name +
             " says user_namespace: own";
  if (reason.empty()) return std::nullopt;
  return Failure{"evidence", "benchsand's runtime",
                 std::string(saying(why)) + ": " + reason + " (cure: " + cure(why) +
                     "; or a profile of your own that goes without the runtime, as in docs/without-runtime.md)",
                 engine};
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
