// The BPF programs that count what a run tries to send, as instructions. They hang on the run's cgroup, beside the filter
// and the network namespace: what got past the filter is counted here, and sockets end here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace benchsand {

// What a profile asks for by name; each is one or more programs.
enum class EgressCounter { sockets, connects, packets };
inline constexpr std::array kEgressCounters{EgressCounter::sockets, EgressCounter::connects, EgressCounter::packets};
const char* to_text(EgressCounter counter);

// Where a program hangs, named as the kernel's documentation does.
enum class EgressHook { sock_create, connect4, connect6, sendmsg4, sendmsg6, egress };
inline constexpr std::array kEgressHooks{EgressHook::sock_create, EgressHook::connect4, EgressHook::connect6,
                                         EgressHook::sendmsg4,    EgressHook::sendmsg6, EgressHook::egress};
const char* to_text(EgressHook hook);
EgressCounter counter_of(EgressHook hook);

// One number each, in the order in which they stand in the map's only value.
struct EgressCount {
  EgressCounter counter;
  const char* name;  // of the observation, below `network.`
};
inline constexpr std::array<EgressCount, 7> kEgressCounts{{
    {EgressCounter::sockets, "bpf_sockets"},
    {EgressCounter::connects, "bpf_ipv4_connects"},
    {EgressCounter::connects, "bpf_ipv6_connects"},
    {EgressCounter::connects, "bpf_ipv4_sends"},
    {EgressCounter::connects, "bpf_ipv6_sends"},
    {EgressCounter::packets, "bpf_packets"},
    {EgressCounter::packets, "bpf_bytes"},
}};

std::string names_of(const std::vector<EgressCounter>& counters);  // "sockets connects packets", or "none"
bool has(const std::vector<EgressCounter>& counters, EgressCounter counter);
// "sock_create connect4 …", or "none".
std::string hooks_of(const std::vector<EgressCounter>& counters);

// As struct bpf_insn of linux/bpf.h: the low four bits of `registers` are the destination.
struct EbpfInstruction {
  std::uint8_t code = 0, registers = 0;
  std::int16_t offset = 0;
  std::int32_t immediate = 0;
  bool operator==(const EbpfInstruction&) const = default;
};

// Counts into the map and lets through; sock_create lets through only without `deny`, which the kernel turns into EPERM.
std::vector<EbpfInstruction> egress_program(EgressHook hook, int map, bool deny);

}  // namespace benchsand
