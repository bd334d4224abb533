#include "oci/relaxation.h"

#include <algorithm>
#include <cstdlib>
#include <string>

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

}  // namespace

const char* to_text(Relaxation relaxation) {
  switch (relaxation) {
    case Relaxation::seccomp_network:
      return "seccomp-network";
    case Relaxation::bpf_deny:
      return "bpf-deny";
  }
  std::abort();  // not a value of the enumeration
}

void take_down(Policy& policy, Relaxation relaxation) {
  if (!policy.taken_down.insert(relaxation).second) return;
  policy.relaxations.push_back(std::string("taken down for a test: ") + to_text(relaxation));
  switch (relaxation) {
    case Relaxation::seccomp_network:
      return allow_socket_calls(policy.seccomp);
    case Relaxation::bpf_deny:
      return;  // the program itself is another one
  }
}

}  // namespace benchsand
