// The inside of bpf_eval: a checked program, followed on data of which only a part is known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "oci/bpf_eval.h"

namespace benchsand {

// "0x5412", as messages write words.
std::string hexadecimal(std::uint32_t word);

// The data a filter reads, struct seccomp_data, in 32-bit words: nr, arch, instruction pointer (2), six arguments (2 each,
// low half first).
inline constexpr std::size_t kDataWords = 16;
inline constexpr std::size_t kNrWord = 0, kArchWord = 1, kFirstArgWord = 4;

// What is known of one word: (word & mask) == value, and for each of `differs`: (word & first) != second.
struct WordFacts {
  std::uint32_t mask = 0, value = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> differs;

  bool knows(std::uint32_t bits) const { return (bits & ~mask) == 0; }
  // false: no word is left.
  bool add_equal(std::uint32_t bits, std::uint32_t is);
  bool add_different(std::uint32_t bits, std::uint32_t is_not);
};
using Facts = std::array<WordFacts, kDataWords>;

// false: no data agrees with both.
bool add_facts(Facts& facts, const Facts& more);

// The checks of the kernel's seccomp_check_filter and bpf_check_classic.
Result<void> check_program(const BpfProgram& program);

// One way through a program: what the data must be like to take it, and what is returned then. Ordered comparisons and
// sums of unknown words add no fact, so a path may be wider than it really is, never narrower.
struct Path {
  std::uint32_t answer = 0;
  Facts facts;
};

// Every path that data with these facts can take through a program that has passed check_program.
// An error when they are too many to follow.
Result<std::vector<Path>> follow(const BpfProgram& program, const Facts& facts);

}  // namespace benchsand
