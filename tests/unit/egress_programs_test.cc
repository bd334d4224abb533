#include "oci/egress_programs.h"

#include <doctest/doctest.h>

#include <set>

using namespace benchsand;

namespace {

constexpr int kMap = 7;

// What a program does to the counts, followed by hand: every jump taken or not by `interface`. -1: it is no program.
struct Effect {
  std::array<std::uint64_t, kEgressCounts.size()> counts{};
  int answer = -1;
};

Effect run(const std::vector<EbpfInstruction>& program, std::uint64_t interface, std::uint64_t length) {
  Effect effect;
  std::array<std::uint64_t, 4> registers{};
  for (std::size_t at = 0; at < program.size(); ++at) {
    const EbpfInstruction& i = program[at];
    const std::size_t to = i.registers & 15, from = i.registers >> 4;
    REQUIRE(to < registers.size());
    if (i.code == 0x61) {
      REQUIRE(from == 1);
      REQUIRE((i.offset == 0 || i.offset == 40));
      registers[to] = i.offset == 0 ? length : interface;
    } else if (i.code == 0x18) {
      REQUIRE(from == 2);
      REQUIRE(i.immediate == kMap);
      registers[to] = static_cast<std::uint64_t>(program.at(++at).immediate);
    } else if (i.code == 0xdb) {
      REQUIRE(i.immediate == 0);  // plain addition
      effect.counts.at(registers[to] / 8) += registers[from];
    } else if (i.code == 0xb7) {
      registers[to] = static_cast<std::uint64_t>(i.immediate);
    } else if (i.code == 0x15) {
      if (registers[to] == static_cast<std::uint64_t>(i.immediate)) at += static_cast<std::size_t>(i.offset);
    } else {
      REQUIRE(i.code == 0x95);
      CHECK(at + 1 == program.size());
      effect.answer = static_cast<int>(registers[0]);
    }
  }
  return effect;
}

}  // namespace

TEST_CASE("each program adds to its own counts and to no other's") {
  std::size_t slot = 0;
  for (const EgressHook hook : kEgressHooks) {
    CAPTURE(to_text(hook));
    const Effect effect = run(egress_program(hook, kMap, true), 2, 1500);
    for (std::size_t i = 0; i < kEgressCounts.size(); ++i) {
      const bool bytes = hook == EgressHook::egress && i == slot + 1;
      CHECK(effect.counts[i] == (bytes ? 1500u : i == slot ? 1u : 0u));
      if (effect.counts[i] != 0) CHECK(kEgressCounts[i].counter == counter_of(hook));
    }
    ++slot;
  }
  CHECK(slot + 1 == kEgressCounts.size());
}

TEST_CASE("only sock_create refuses, and only where it is told to") {
  for (const EgressHook hook : kEgressHooks)
    for (const bool deny : {true, false}) {
      CAPTURE(to_text(hook));
      CHECK(run(egress_program(hook, kMap, deny), 2, 100).answer == (deny && hook == EgressHook::sock_create ? 0 : 1));
    }
}

TEST_CASE("what goes out by loopback is let through and not counted") {
  const Effect effect = run(egress_program(EgressHook::egress, kMap, true), 1, 1500);
  CHECK(effect.answer == 1);
  CHECK(effect.counts == Effect().counts);
}

TEST_CASE("counters are named, and bring their programs along") {
  CHECK(hooks_of({EgressCounter::packets, EgressCounter::sockets}) == "sock_create egress");
  CHECK(hooks_of({EgressCounter::connects}) == "connect4 connect6 sendmsg4 sendmsg6");
  CHECK(hooks_of({}) == "none");
  CHECK(names_of({EgressCounter::packets, EgressCounter::connects}) == "connects packets");
  std::set<std::string> names;
  for (const EgressCount& count : kEgressCounts) names.insert(count.name);
  CHECK(names.size() == kEgressCounts.size());
}
