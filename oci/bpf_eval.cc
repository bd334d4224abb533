#include "oci/bpf_eval.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "oci/bpf_machine.h"

namespace benchsand {
namespace {

// Instruction codes of linux/bpf_common.h that seccomp takes; the second of a pair has X as operand instead of K.
constexpr std::uint16_t kLoadWord = 0x20, kLoadLength = 0x80, kLoadImmediate = 0x00, kLoadMemory = 0x60;
constexpr std::uint16_t kLoadXLength = 0x81, kLoadXImmediate = 0x01, kLoadXMemory = 0x61;
constexpr std::uint16_t kStore = 0x02, kStoreX = 0x03, kTax = 0x07, kTxa = 0x87;
constexpr std::uint16_t kReturnK = 0x06, kReturnA = 0x16, kJump = 0x05;
constexpr std::uint16_t kJumpEqualK = 0x15, kJumpEqualX = 0x1d, kJumpGreaterK = 0x25, kJumpGreaterX = 0x2d;
constexpr std::uint16_t kJumpGreaterEqualK = 0x35, kJumpGreaterEqualX = 0x3d, kJumpSetK = 0x45, kJumpSetX = 0x4d;
constexpr std::uint16_t kAddK = 0x04, kAddX = 0x0c, kSubK = 0x14, kSubX = 0x1c, kMulK = 0x24, kMulX = 0x2c;
constexpr std::uint16_t kDivK = 0x34, kDivX = 0x3c, kOrK = 0x44, kOrX = 0x4c, kAndK = 0x54, kAndX = 0x5c;
constexpr std::uint16_t kLshK = 0x64, kLshX = 0x6c, kRshK = 0x74, kRshX = 0x7c, kXorK = 0xa4, kXorX = 0xac;
constexpr std::uint16_t kNegate = 0x84;

constexpr std::array kKnownCodes{kLoadWord,
                                 kLoadLength,
                                 kLoadImmediate,
                                 kLoadMemory,
                                 kLoadXLength,
                                 kLoadXImmediate,
                                 kLoadXMemory,
                                 kStore,
                                 kStoreX,
                                 kTax,
                                 kTxa,
                                 kReturnK,
                                 kReturnA,
                                 kJump,
                                 kJumpEqualK,
                                 kJumpEqualX,
                                 kJumpGreaterK,
                                 kJumpGreaterX,
                                 kJumpGreaterEqualK,
                                 kJumpGreaterEqualX,
                                 kJumpSetK,
                                 kJumpSetX,
                                 kAddK,
                                 kAddX,
                                 kSubK,
                                 kSubX,
                                 kMulK,
                                 kMulX,
                                 kDivK,
                                 kDivX,
                                 kOrK,
                                 kOrX,
                                 kAndK,
                                 kAndX,
                                 kLshK,
                                 kLshX,
                                 kRshK,
                                 kRshX,
                                 kXorK,
                                 kXorX,
                                 kNegate};

constexpr std::uint16_t kClassMask = 0x07, kClassJump = 0x05, kClassAlu = 0x04;
constexpr std::uint16_t kOperandIsX = 0x08;
constexpr std::size_t kMostInstructions = 4096;  // BPF_MAXINSNS
constexpr std::uint32_t kMemoryWords = 16;       // BPF_MEMWORDS
constexpr std::uint32_t kDataBytes = 64;         // sizeof(struct seccomp_data)
constexpr std::uint32_t kReturnAllow = 0x7fff0000;
constexpr std::size_t kMostSteps = 1 << 17;

using Word = std::optional<std::uint32_t>;

std::unexpected<Error> bad_instruction(std::size_t at, const BpfInstruction& instruction, const std::string& why) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "instruction %zu (code 0x%02x, k 0x%x): ", at,
                static_cast<unsigned>(instruction.code), static_cast<unsigned>(instruction.k));
  return fault("check the seccomp program: " + std::string(text.data()) + why);
}

bool is_conditional_jump(std::uint16_t code) {
  return (code & kClassMask) == kClassJump && code != kJump;
}

bool is_known(std::uint16_t code) {
  return std::find(kKnownCodes.begin(), kKnownCodes.end(), code) != kKnownCodes.end();
}

bool uses_memory(std::uint16_t code) {
  return code == kLoadMemory || code == kLoadXMemory || code == kStore || code == kStoreX;
}

Result<void> check_instruction(const BpfProgram& program, std::size_t at) {
  const BpfInstruction& i = program[at];
  const std::size_t after = program.size() - at - 1;
  if (!is_known(i.code)) return bad_instruction(at, i, "a seccomp filter may not use it");
  if (i.code == kLoadWord && (i.k % 4 != 0 || i.k >= kDataBytes))
    return bad_instruction(at, i, "it loads outside the words of seccomp_data");
  if (uses_memory(i.code) && i.k >= kMemoryWords) return bad_instruction(at, i, "there are 16 memory words");
  if (i.code == kDivK && i.k == 0) return bad_instruction(at, i, "it divides by zero");
  if ((i.code == kLshK || i.code == kRshK) && i.k >= 32)
    return bad_instruction(at, i, "it shifts by more than 31 bits");
  const bool too_far = i.code == kJump ? i.k >= after : is_conditional_jump(i.code) && std::max(i.jt, i.jf) >= after;
  if (too_far) return bad_instruction(at, i, "it jumps out of the program");
  return {};
}

// A memory word may be read only where every path has written it before; otherwise it would show kernel stack.
Result<void> check_memory_reads(const BpfProgram& program) {
  std::vector<std::uint32_t> written(program.size(), ~0U);
  std::uint32_t now = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const BpfInstruction& i = program[at];
    now &= written[at];
    if (i.code == kStore || i.code == kStoreX) now |= 1U << i.k;
    if ((i.code == kLoadMemory || i.code == kLoadXMemory) && (now & 1U << i.k) == 0)
      return bad_instruction(at, i, "it reads a memory word that was not written");
    if (i.code == kJump) {
      written[at + 1 + i.k] &= now;
      now = ~0U;
    } else if (is_conditional_jump(i.code)) {
      written[at + 1 + i.jt] &= now;
      written[at + 1 + i.jf] &= now;
      now = ~0U;
    }
  }
  return {};
}

struct State {
  std::size_t at = 0;
  Word a = 0, x = 0;
  std::array<Word, kMemoryWords> memory{};
};

Word arithmetic(std::uint16_t code, std::uint32_t a, std::uint32_t operand) {
  switch (code & ~kOperandIsX) {
    case kAddK:
      return a + operand;
    case kSubK:
      return a - operand;
    case kMulK:
      return a * operand;
    case kDivK:
      return a / operand;
    case kOrK:
      return a | operand;
    case kAndK:
      return a & operand;
    case kLshK:
      return a << (operand & 31);  // the kernel's own 32-bit shifts look at five bits
    case kRshK:
      return a >> (operand & 31);
    case kXorK:
      return a ^ operand;
    case kNegate:
      return 0U - a;
    default:
      return std::nullopt;
  }
}

bool jumps(std::uint16_t code, std::uint32_t a, std::uint32_t operand) {
  switch (code & ~kOperandIsX) {
    case kJumpEqualK:
      return a == operand;
    case kJumpGreaterK:
      return a > operand;
    case kJumpGreaterEqualK:
      return a >= operand;
    default:
      return (a & operand) != 0;
  }
}

class Explorer {
 public:
  Explorer(const BpfProgram& program, const PartialData& data) : program_(program), data_(data) {}

  Result<std::set<std::uint32_t>> run() {
    pending_.push_back(State{});
    while (!pending_.empty()) {
      State state = pending_.back();
      pending_.pop_back();
      while (step(state))
        if (++steps_ > kMostSteps) return fault("follow the seccomp program: it has too many paths");
    }
    return std::move(answers_);
  }

 private:
  // false: this path has ended.
  bool step(State& state) {
    const BpfInstruction& i = program_[state.at++];
    const Word operand = (i.code & kOperandIsX) != 0 ? state.x : Word(i.k);
    if ((i.code & kClassMask) == kClassAlu) return calculate(state, i, operand);
    if (is_conditional_jump(i.code)) return branch(state, i, operand);
    switch (i.code) {
      case kLoadWord:
        state.a = data_[i.k / 4];
        break;
      case kLoadImmediate:
        state.a = i.k;
        break;
      case kLoadLength:
        state.a = kDataBytes;
        break;
      case kLoadMemory:
        state.a = state.memory[i.k];
        break;
      case kLoadXImmediate:
        state.x = i.k;
        break;
      case kLoadXLength:
        state.x = kDataBytes;
        break;
      case kLoadXMemory:
        state.x = state.memory[i.k];
        break;
      case kStore:
        state.memory[i.k] = state.a;
        break;
      case kStoreX:
        state.memory[i.k] = state.x;
        break;
      case kTax:
        state.x = state.a;
        break;
      case kTxa:
        state.a = state.x;
        break;
      case kJump:
        state.at += i.k;
        break;
      case kReturnK:
        return end(i.k);
      // Whatever a candidate could make it return, the worst is an allowed call.
      case kReturnA:
        return end(state.a ? *state.a : kReturnAllow);
      default:
        break;
    }
    return true;
  }

  bool end(std::uint32_t answer) {
    answers_.insert(answer);
    return false;
  }

  bool calculate(State& state, const BpfInstruction& i, Word operand) {
    const bool divides = i.code == kDivX;
    if (divides && operand == 0U) return end(0);  // the kernel ends the filter with 0, which kills
    if (divides && !operand) answers_.insert(0);
    state.a = state.a && operand ? arithmetic(i.code, *state.a, *operand) : Word{};
    return true;
  }

  bool branch(State& state, const BpfInstruction& i, Word operand) {
    if (state.a && operand) {
      state.at += jumps(i.code, *state.a, *operand) ? i.jt : i.jf;
      return true;
    }
    if (i.jt != i.jf) {
      pending_.push_back(state);
      pending_.back().at += i.jt;
    }
    state.at += i.jf;
    return true;
  }

  const BpfProgram& program_;
  const PartialData& data_;
  std::vector<State> pending_;
  std::set<std::uint32_t> answers_;
  std::size_t steps_ = 0;
};

PartialData whole(const SeccompData& data) {
  PartialData words{};
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  words[kNrWord] = static_cast<std::uint32_t>(data.nr);
  words[kArchWord] = data.arch;
  words[2] = low(data.instruction_pointer);
  words[3] = low(data.instruction_pointer >> 32);
  for (std::size_t i = 0; i < data.args.size(); ++i) {
    words[kFirstArgWord + 2 * i] = low(data.args[i]);
    words[kFirstArgWord + 2 * i + 1] = low(data.args[i] >> 32);
  }
  return words;
}

}  // namespace

Result<void> check_program(const BpfProgram& program) {
  if (program.empty() || program.size() > kMostInstructions)
    return fault("check the seccomp program: 1 to 4096 instructions are due, there are " +
                 std::to_string(program.size()));
  for (std::size_t at = 0; at < program.size(); ++at) TRY_VOID(check_instruction(program, at));
  const BpfInstruction& last = program.back();
  if (last.code != kReturnK && last.code != kReturnA)
    return bad_instruction(program.size() - 1, last, "the last one does not return");
  return check_memory_reads(program);
}

Result<std::set<std::uint32_t>> possible_answers(const BpfProgram& program, const PartialData& data) {
  return Explorer(program, data).run();
}

Result<std::uint32_t> evaluate(const BpfProgram& program, const SeccompData& data) {
  TRY_VOID(check_program(program));
  const std::set<std::uint32_t> answers = TRY(possible_answers(program, whole(data)));
  return *answers.begin();
}

}  // namespace benchsand
