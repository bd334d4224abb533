// The inside of bpf_eval: a checked program, run on data of which only a part is known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "oci/bpf_eval.h"

namespace benchsand {

// struct seccomp_data as the filter reads it, in 32-bit words: nr, arch, instruction pointer (2), six arguments (2 each,
// low half first). A word without a value stands for every value.
using PartialData = std::array<std::optional<std::uint32_t>, 16>;
inline constexpr std::size_t kNrWord = 0, kArchWord = 1, kFirstArgWord = 4;

// The checks of the kernel's seccomp_check_filter and bpf_check_classic.
Result<void> check_program(const BpfProgram& program);

// Every value that the program, which must have passed check_program, can return for such data.
// An error when the paths are too many to follow.
Result<std::set<std::uint32_t>> possible_answers(const BpfProgram& program, const PartialData& data);

}  // namespace benchsand
