#include "oci/relaxation.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "oci/policy.h"

namespace benchsand {

namespace {

const std::vector<std::string> kSocketCalls{"socket",      "socketpair", "connect",   "bind",     "listen",
                                            "accept",      "accept4",    "sendto",    "sendmsg",  "sendmmsg",
                                            "recvfrom",    "recvmsg",    "recvmmsg",  "shutdown", "getsockname",
                                            "getpeername", "getsockopt", "setsockopt"};

bool is_socket_call(const std::string& call) {
  return std::find(kSocketCalls.begin(), kSocketCalls.end(), call) != kSocketCalls.end();
}

void allow_socket_calls(SeccompRules& rules) {
  std::erase_if(rules.allow, is_socket_call);
  std::erase_if(rules.allow_if, [](const ArgumentRule& rule) { return is_socket_call(rule.call); });
  for (auto& [name, calls] : rules.refuse_with) std::erase_if(calls, is_socket_call);
  std::erase_if(rules.refuse_with, [](const auto& refusal) { return refusal.second.empty(); });
  rules.allow.insert(rules.allow.end(), kSocketCalls.begin(), kSocketCalls.end());
}

// Those that have rules for what is taken away; where the rules themselves follow the policy there is none.
std::vector<std::string_view> broken_walls(Relaxation relaxation) {
  switch (relaxation) {
    case Relaxation::seccomp_network:
    case Relaxation::bpf_deny:
    case Relaxation::user_namespace:
      return {};
    case Relaxation::seccomp:
      return {"syscalls", "network"};
    case Relaxation::no_new_privs:
    case Relaxation::identity:
      return {"privileges"};
    case Relaxation::masks:
    case Relaxation::rootfs:
    case Relaxation::devices:
      return {"mounts", "rootfs"};
    case Relaxation::pid_namespace:
      return {"namespaces"};
    case Relaxation::network_namespace:
      return {"network"};
  }
  std::abort();
}

}  // namespace

const char* to_text(Relaxation relaxation) {
  switch (relaxation) {
    case Relaxation::seccomp_network:
      return "seccomp-network";
    case Relaxation::bpf_deny:
      return "bpf-deny";
    case Relaxation::seccomp:
      return "seccomp";
    case Relaxation::no_new_privs:
      return "no-new-privs";
    case Relaxation::identity:
      return "identity";
    case Relaxation::user_namespace:
      return "user-namespace";
    case Relaxation::masks:
      return "masks";
    case Relaxation::rootfs:
      return "rootfs";
    case Relaxation::devices:
      return "devices";
    case Relaxation::pid_namespace:
      return "pid-namespace";
    case Relaxation::network_namespace:
      return "network-namespace";
  }
  std::abort();  // not a value of the enumeration
}

bool is_down(const Policy& policy, Relaxation relaxation) {
  return policy.taken_down.contains(relaxation);
}

bool may_fail_at_the_door(const Policy& policy, const std::string& wall) {
  return std::any_of(policy.taken_down.begin(), policy.taken_down.end(), [&](Relaxation relaxation) {
    const auto walls = broken_walls(relaxation);
    return std::find(walls.begin(), walls.end(), wall) != walls.end();
  });
}

void take_down(Policy& policy, Relaxation relaxation) {
  if (!policy.taken_down.insert(relaxation).second) return;
  policy.relaxations.push_back(std::string("taken down for a test: ") + to_text(relaxation));
  switch (relaxation) {
    case Relaxation::seccomp_network:
      return allow_socket_calls(policy.seccomp);
    case Relaxation::seccomp:
      policy.seccomp.open = true;
      return;
    case Relaxation::user_namespace:
      policy.user_namespace = UserNamespace::host;
      return;
    case Relaxation::masks:
      policy.masked_paths.clear();
      policy.readonly_paths.clear();
      return;
    case Relaxation::bpf_deny:  // the program itself is another one
    case Relaxation::no_new_privs:
    case Relaxation::identity:
    case Relaxation::rootfs:
    case Relaxation::devices:
    case Relaxation::pid_namespace:
    case Relaxation::network_namespace:
      return;  // what is made is another: bundle.cc, sandbox.cc
  }
}

}  // namespace benchsand
