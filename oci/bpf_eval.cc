#include "oci/bpf_eval.h"

#include <algorithm>
#include <charconv>
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

std::unexpected<Error> bad_instruction(std::size_t at, const BpfInstruction& instruction, const std::string& why) {
  return fault("check the seccomp program: instruction " + std::to_string(at) + " (code " +
               hexadecimal(instruction.code) + ", k " + hexadecimal(instruction.k) + "): " + why);
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

// A register or memory word: a constant, some bits of a word of the data, or anything.
struct Word {
  enum class Kind { constant, data, anything } kind = Kind::constant;
  std::uint32_t value = 0;  // the constant, or the bits of the data word
  std::size_t index = 0;    // of the data word
};

Word anything() {
  return {.kind = Word::Kind::anything};
}

struct State {
  std::size_t at = 0;
  Word a, x;
  std::array<Word, kMemoryWords> memory{};
  Facts facts;
};

std::uint32_t arithmetic(std::uint16_t code, std::uint32_t a, std::uint32_t operand) {
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
    default:
      return 0U - a;  // kNegate
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
  Explorer(const BpfProgram& program, const Facts& facts) : program_(program) { pending_.emplace_back().facts = facts; }

  Result<std::vector<Path>> run() {
    while (!pending_.empty()) {
      State state = std::move(pending_.back());
      pending_.pop_back();
      while (step(state))
        if (++steps_ > kMostSteps) return fault("follow the seccomp program: it has too many paths");
    }
    return std::move(paths_);
  }

 private:
  // false: this path has ended.
  bool step(State& state) {
    const BpfInstruction& i = program_[state.at++];
    const Word operand = (i.code & kOperandIsX) != 0 ? state.x : Word{.value = i.k};
    if ((i.code & kClassMask) == kClassAlu) return calculate(state, i, operand);
    if (is_conditional_jump(i.code)) return branch(state, i, operand);
    if (i.code == kReturnK) return end(state, i.k);
    // Whatever a candidate could make it return, the worst is an allowed call.
    if (i.code == kReturnA) return end(state, state.a.kind == Word::Kind::constant ? state.a.value : kReturnAllow);
    if (i.code == kJump)
      state.at += i.k;
    else
      move(state, i);
    return true;
  }

  static void move(State& state, const BpfInstruction& i) {
    if (i.code == kLoadWord) state.a = load(state, i.k / 4);
    if (i.code == kLoadImmediate) state.a = {.value = i.k};
    if (i.code == kLoadLength) state.a = {.value = kDataBytes};
    if (i.code == kLoadMemory) state.a = state.memory[i.k];
    if (i.code == kLoadXImmediate) state.x = {.value = i.k};
    if (i.code == kLoadXLength) state.x = {.value = kDataBytes};
    if (i.code == kLoadXMemory) state.x = state.memory[i.k];
    if (i.code == kStore) state.memory[i.k] = state.a;
    if (i.code == kStoreX) state.memory[i.k] = state.x;
    if (i.code == kTax) state.x = state.a;
    if (i.code == kTxa) state.a = state.x;
  }

  static Word load(const State& state, std::size_t index) {
    const WordFacts& facts = state.facts[index];
    if (facts.knows(~0U)) return {.value = facts.value};
    return {.kind = Word::Kind::data, .value = ~0U, .index = index};
  }

  bool end(State& state, std::uint32_t answer) {
    paths_.push_back({answer, std::move(state.facts)});
    return false;
  }

  bool calculate(State& state, const BpfInstruction& i, const Word& operand) {
    const bool constant = operand.kind == Word::Kind::constant;
    // The kernel ends the filter with 0, which kills, when X is 0.
    if (i.code == kDivX && constant && operand.value == 0) return end(state, 0);
    if (i.code == kDivX && !constant) paths_.push_back({0, state.facts});
    if (constant && state.a.kind == Word::Kind::constant)
      state.a.value = arithmetic(i.code, state.a.value, operand.value);
    else if (constant && state.a.kind == Word::Kind::data && (i.code == kAndK || i.code == kAndX))
      state.a.value &= operand.value;
    else
      state.a = anything();
    return true;
  }

  bool branch(State& state, const BpfInstruction& i, const Word& operand) {
    if (state.a.kind == Word::Kind::constant && operand.kind == Word::Kind::constant) {
      state.at += jumps(i.code, state.a.value, operand.value) ? i.jt : i.jf;
      return true;
    }
    State taken = state;
    taken.at += i.jt;
    state.at += i.jf;
    if (learn(taken, i.code, operand, true)) pending_.push_back(std::move(taken));
    return learn(state, i.code, operand, false);
  }

  // What the outcome of a jump says about the data; false: it cannot have come out so.
  static bool learn(State& state, std::uint16_t code, const Word& operand, bool taken) {
    if (state.a.kind != Word::Kind::data || operand.kind != Word::Kind::constant) return true;
    WordFacts& facts = state.facts[state.a.index];
    const std::uint32_t bits = state.a.value;
    switch (code & ~kOperandIsX) {
      case kJumpEqualK:
        return taken ? facts.add_equal(bits, operand.value) : facts.add_different(bits, operand.value);
      case kJumpSetK:
        return taken ? facts.add_different(bits & operand.value, 0) : facts.add_equal(bits & operand.value, 0);
      default:
        return true;
    }
  }

  const BpfProgram& program_;
  std::vector<State> pending_;
  std::vector<Path> paths_;
  std::size_t steps_ = 0;
};

Facts whole(const SeccompData& data) {
  Facts facts;
  const auto set = [&](std::size_t word, std::uint64_t value) {
    facts[word] = {.mask = ~0U, .value = static_cast<std::uint32_t>(value), .differs = {}};
  };
  set(kNrWord, static_cast<std::uint32_t>(data.nr));
  set(kArchWord, data.arch);
  set(2, data.instruction_pointer);
  set(3, data.instruction_pointer >> 32);
  for (std::size_t i = 0; i < data.args.size(); ++i) {
    set(kFirstArgWord + 2 * i, data.args[i]);
    set(kFirstArgWord + 2 * i + 1, data.args[i] >> 32);
  }
  return facts;
}

}  // namespace

std::string hexadecimal(std::uint32_t word) {
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), word, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

bool WordFacts::add_equal(std::uint32_t bits, std::uint32_t is) {
  if ((is & ~bits) != 0 || ((value ^ is) & mask & bits) != 0) return false;
  mask |= bits;
  value |= is;
  return std::none_of(differs.begin(), differs.end(), [&](const auto& not_this) {
    return knows(not_this.first) && (value & not_this.first) == not_this.second;
  });
}

bool WordFacts::add_different(std::uint32_t bits, std::uint32_t is_not) {
  if ((is_not & ~bits) != 0) return true;
  if (knows(bits)) return (value & bits) != is_not;
  differs.emplace_back(bits, is_not);
  return true;
}

bool add_facts(Facts& facts, const Facts& more) {
  for (std::size_t i = 0; i < kDataWords; ++i) {
    if (!facts[i].add_equal(more[i].mask, more[i].value)) return false;
    for (const auto& [bits, is_not] : more[i].differs)
      if (!facts[i].add_different(bits, is_not)) return false;
  }
  return true;
}

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

Result<std::vector<Path>> follow(const BpfProgram& program, const Facts& facts) {
  return Explorer(program, facts).run();
}

Result<std::uint32_t> evaluate(const BpfProgram& program, const SeccompData& data) {
  TRY_VOID(check_program(program));
  const std::vector<Path> paths = TRY(follow(program, whole(data)));
  return paths.front().answer;
}

}  // namespace benchsand
