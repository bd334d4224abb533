// Walls that are taken down by name: by a test, to see the next one stand by itself, and by the conformance suite, to see that what
// is refused would have worked. No task, profile, flag, environment variable or file leads here: only C++ that calls take_down, and
// that is in tests/ and conformance/, where nothing but the suite's own probe runs. Such a run is never scored.
#pragma once

#include <array>
#include <string>

namespace benchsand {

struct Policy;

enum class Relaxation {
  seccomp_network,    // the filter lets every socket family and every socket call through
  bpf_deny,           // the BPF program counts inet sockets but lets them be made
  seccomp,            // the filter lets every call through; those of the door still come to it
  no_new_privs,       // a program may give more than its caller has
  identity,           // root of the container's user namespace, with every capability
  user_namespace,     // the host's
  masks,              // nothing in /proc is hidden, and it is writable
  rootfs,             // writable
  devices,            // /dev is writable
  pid_namespace,      // that of the delegate, who outlives init
  network_namespace,  // one that the suite made, in which it answers to every address
};
inline constexpr std::array kRelaxations{
    Relaxation::seccomp_network, Relaxation::bpf_deny,         Relaxation::seccomp,
    Relaxation::no_new_privs,    Relaxation::identity,         Relaxation::user_namespace,
    Relaxation::masks,           Relaxation::rootfs,           Relaxation::devices,
    Relaxation::pid_namespace,   Relaxation::network_namespace};
const char* to_text(Relaxation relaxation);
bool is_down(const Policy& policy, Relaxation relaxation);

// Of a wall whose rules expect what the policy no longer gives: it is broken then, and said to be, but the candidate runs.
bool may_fail_at_the_door(const Policy& policy, const std::string& wall);

// The policy without that wall, which then says so among its relaxations.
void take_down(Policy& policy, Relaxation relaxation);

}  // namespace benchsand
