// Walls that a test takes down, one at a time, to see the next one stand by itself. No task, profile, flag, environment
// variable or file leads here: only C++ that calls take_down, and that is in tests/. Such a run is never scored.
#pragma once

#include <array>

namespace benchsand {

struct Policy;

enum class Relaxation {
  seccomp_network,  // the filter lets every socket family and every socket call through
  bpf_deny,         // the BPF program counts inet sockets but lets them be made
};
inline constexpr std::array kRelaxations{Relaxation::seccomp_network, Relaxation::bpf_deny};
const char* to_text(Relaxation relaxation);

// The policy without that wall, which then says so among its relaxations.
void take_down(Policy& policy, Relaxation relaxation);

}  // namespace benchsand
