// A small interpreter for classic BPF as seccomp uses it, to say what an attached filter does without asking anybody else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "oci/seccomp.h"

namespace benchsand {

struct SeccompData {
  std::int32_t nr = 0;
  std::uint32_t arch = 0;
  std::uint64_t instruction_pointer = 0;
  std::array<std::uint64_t, 6> args{};
};

inline constexpr std::uint32_t kArchX8664 = 0xC000003E;
inline constexpr std::uint32_t kArchI386 = 0x40000003;
inline constexpr std::int32_t kX32Bit = 0x40000000;

// The return value of the filter (SECCOMP_RET_*). Any instruction the kernel would not accept in a seccomp filter, a jump
// out of the program, or a fall off its end is an error.
Result<std::uint32_t> evaluate(const BpfProgram& program, const SeccompData& data);

// Nothing below tries out arguments: every path that some argument could take through the program is followed, so
// "refused" means refused for all arguments. A path that no argument can take may make a call look more open, never less.
struct FilterSummary {
  // M: the x86-64 call numbers of Linux 6.18: 0 to 334 and 424 to 469. A constant, so that M and N mean the same on every
  // host; libseccomp's table of names differs by version. 335 and 336 (uretprobe, uprobe) are the kernel's own
  // trampolines, which no filter sees.
  std::uint64_t calls = 0;
  std::uint64_t refused = 0;      // N: never allowed or let run by the supervisor, whatever the arguments
  std::uint64_t conditional = 0;  // allowed for some arguments only
  std::uint64_t notified = 0;     // and let run: the calls of the door
  std::uint64_t counted = 0;      // refused, for some arguments at least, by the supervisor, who counts them
  // Numbers outside the table (335 to 423, 470 to 599, and three odd ones) that are not refused: must be 0.
  std::uint64_t unlisted_open = 0;
  bool i386_killed = false;  // every i386 call number is killed
  bool x32_killed = false;
  std::vector<std::string> open_families;  // those other than AF_UNIX that socket(2) would allow: "2", "16", ...
  std::string sha256;                      // of the program, 8 bytes an instruction, little endian
  bool operator==(const FilterSummary&) const = default;
};

Result<FilterSummary> summarize_filter(const BpfProgram& program);

// "" when both programs have the same effect, else the first difference in words. Compared path by path, for every call
// number and any arguments, and for both foreign architectures.
// allow, notify and kill must be equal; so must the errno of every call that the rules name. A call that they do not name
// may be refused with another errno: runc answers ENOSYS for numbers above the newest one that a profile names.
Result<std::string> filter_difference(const BpfProgram& a, const BpfProgram& b, const SeccompRules& rules);

}  // namespace benchsand
