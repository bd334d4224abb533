#include "oci/egress_programs.h"

#include <algorithm>
#include <cstdlib>

namespace benchsand {

namespace {

// The operation codes that are needed, from the instruction set's standard (RFC 9669).
constexpr std::uint8_t kLoadWord = 0x61, kLoadMapValue = 0x18, kMove = 0xb7, kJumpIfEqual = 0x15, kAtomicAdd = 0xdb,
                       kExit = 0x95;
constexpr std::uint8_t kMapValue =
    2;  // BPF_PSEUDO_MAP_VALUE: the immediate is a map, the next one an offset into its value
constexpr std::uint8_t kResult = 0, kContext = 1, kAddress = 2, kAmount = 3;  // registers

// Of the context of an egress program, struct __sk_buff.
constexpr std::int16_t kLength = 0, kInterface = 40;
constexpr std::int32_t kLoopback = 1;  // in every network namespace

using Program = std::vector<EbpfInstruction>;

std::uint8_t registers(std::uint8_t destination, std::uint8_t source = 0) {
  return static_cast<std::uint8_t>(destination | source << 4);
}

void add_amount(Program& program, int map, std::size_t slot) {
  program.push_back({kLoadMapValue, registers(kAddress, kMapValue), 0, map});
  program.push_back({0, 0, 0, static_cast<std::int32_t>(slot * sizeof(std::uint64_t))});
  program.push_back({kAtomicAdd, registers(kAddress, kAmount), 0, 0});
}

void answer(Program& program, bool let_through) {
  program.push_back({kMove, registers(kResult), 0, let_through ? 1 : 0});
  program.push_back({kExit, 0, 0, 0});
}

std::size_t slot_of(EgressHook hook) {
  return static_cast<std::size_t>(std::find(kEgressHooks.begin(), kEgressHooks.end(), hook) - kEgressHooks.begin());
}

}  // namespace

const char* to_text(EgressCounter counter) {
  switch (counter) {
    case EgressCounter::sockets:
      return "sockets";
    case EgressCounter::connects:
      return "connects";
    case EgressCounter::packets:
      return "packets";
  }
  std::abort();  // not a value of the enumeration
}

const char* to_text(EgressHook hook) {
  switch (hook) {
    case EgressHook::sock_create:
      return "sock_create";
    case EgressHook::connect4:
      return "connect4";
    case EgressHook::connect6:
      return "connect6";
    case EgressHook::sendmsg4:
      return "sendmsg4";
    case EgressHook::sendmsg6:
      return "sendmsg6";
    case EgressHook::egress:
      return "egress";
  }
  std::abort();  // not a value of the enumeration
}

EgressCounter counter_of(EgressHook hook) {
  return kEgressCounts[slot_of(hook)].counter;
}

bool has(const std::vector<EgressCounter>& counters, EgressCounter counter) {
  return std::find(counters.begin(), counters.end(), counter) != counters.end();
}

std::string names_of(const std::vector<EgressCounter>& counters) {
  std::string text;
  for (const EgressCounter counter : kEgressCounters)
    if (has(counters, counter)) text += (text.empty() ? "" : " ") + std::string(to_text(counter));
  return text.empty() ? "none" : text;
}

std::string hooks_of(const std::vector<EgressCounter>& counters) {
  std::string text;
  for (const EgressHook hook : kEgressHooks)
    if (has(counters, counter_of(hook))) text += (text.empty() ? "" : " ") + std::string(to_text(hook));
  return text.empty() ? "none" : text;
}

std::vector<EbpfInstruction> egress_program(EgressHook hook, int map, bool deny) {
  Program program;
  const std::size_t slot = slot_of(hook);
  if (hook == EgressHook::egress) {
    // What stays on loopback reaches nobody; past both counts (three and four instructions) to the answer.
    program.push_back({kLoadWord, registers(kAmount, kContext), kInterface, 0});
    program.push_back({kJumpIfEqual, registers(kAmount), 8, kLoopback});
  }
  program.push_back({kMove, registers(kAmount), 0, 1});
  add_amount(program, map, slot);
  if (hook == EgressHook::egress) {
    program.push_back({kLoadWord, registers(kAmount, kContext), kLength, 0});
    add_amount(program, map, slot + 1);
  }
  answer(program, !(deny && hook == EgressHook::sock_create));
  return program;
}

}  // namespace benchsand
