// The interpreter: every instruction seccomp takes, and every form of a program that the kernel would refuse.
#include "oci/bpf_eval.h"

#include <doctest/doctest.h>

#include <set>

#include "oci/bpf_machine.h"

namespace benchsand {
namespace {

constexpr std::uint16_t kReturnK = 0x06, kReturnA = 0x16, kLoadWord = 0x20, kLoadImmediate = 0x00,
                        kLoadXImmediate = 0x01;

BpfInstruction op(std::uint32_t code, std::uint32_t k = 0, std::uint8_t jt = 0, std::uint8_t jf = 0) {
  return {static_cast<std::uint16_t>(code), jt, jf, k};
}

std::uint32_t run(const BpfProgram& program, const SeccompData& data = {}) {
  const Result<std::uint32_t> result = evaluate(program, data);
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  return *result;
}

std::string refusal(const BpfProgram& program) {
  const Result<std::uint32_t> result = evaluate(program, {});
  return result ? "accepted" : result.error().message;
}

TEST_CASE("loads of every word of the data") {
  SeccompData data;
  data.nr = -2;
  data.arch = kArchX8664;
  data.instruction_pointer = 0x1111111122222222;
  for (std::uint64_t i = 0; i < 6; ++i) data.args[i] = (0xa0 + i) << 32 | (0xb0 + i);
  const std::uint32_t words[16] = {0xfffffffe, kArchX8664, 0x22222222, 0x11111111, 0xb0, 0xa0, 0xb1, 0xa1,
                                   0xb2,       0xa2,       0xb3,       0xa3,       0xb4, 0xa4, 0xb5, 0xa5};
  for (std::uint32_t word = 0; word < 16; ++word)
    CHECK(run({op(kLoadWord, word * 4), op(kReturnA)}, data) == words[word]);
}

TEST_CASE("constants, lengths, registers and scratch memory") {
  CHECK(run({op(kReturnK, 0x7fff0000)}) == 0x7fff0000);
  CHECK(run({op(kReturnA)}) == 0);            // A starts as 0
  CHECK(run({op(0x87), op(kReturnA)}) == 0);  // so does X
  CHECK(run({op(kLoadImmediate, 9), op(kReturnA)}) == 9);
  CHECK(run({op(0x80), op(kReturnA)}) == 64);            // LD LEN
  CHECK(run({op(0x81), op(0x87), op(kReturnA)}) == 64);  // LDX LEN, TXA
  CHECK(run({op(kLoadXImmediate, 8), op(0x87), op(kReturnA)}) == 8);
  CHECK(run({op(kLoadImmediate, 7), op(0x07), op(kLoadImmediate, 0), op(0x87), op(kReturnA)}) == 7);  // TAX
  CHECK(run({op(kLoadImmediate, 5), op(0x02, 15), op(kLoadImmediate, 0), op(0x60, 15), op(kReturnA)}) ==
        5);                                                                                     // ST, LD MEM
  CHECK(run({op(kLoadXImmediate, 6), op(0x03, 3), op(0x61, 3), op(0x87), op(kReturnA)}) == 6);  // STX, LDX MEM
}

TEST_CASE("arithmetic, with a constant and with X") {
  struct Row {
    std::uint16_t code;
    std::uint32_t a, operand, result;
  };
  const Row rows[] = {
      {0x04, 0xffffffff, 2, 1},  {0x14, 1, 2, 0xffffffff},  {0x24, 0x10000, 0x10001, 0x10000},
      {0x34, 7, 2, 3},           {0x44, 0xf0, 0x1f, 0xff},  {0x54, 0xf0, 0x1f, 0x10},
      {0x64, 3, 31, 0x80000000}, {0x74, 0x80000000, 31, 1}, {0xa4, 0xff, 0x0f, 0xf0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.code);
    CHECK(run({op(kLoadImmediate, row.a), op(row.code, row.operand), op(kReturnA)}) == row.result);
    const auto with_x = static_cast<std::uint16_t>(row.code | 0x08);
    CHECK(run({op(kLoadImmediate, row.a), op(kLoadXImmediate, row.operand), op(with_x), op(kReturnA)}) == row.result);
  }
  CHECK(run({op(kLoadImmediate, 1), op(0x84), op(kReturnA)}) == 0xffffffff);  // NEG
  // Division by an X of zero ends the filter with 0; a shift looks at five bits of X.
  CHECK(run({op(kLoadImmediate, 1), op(kLoadXImmediate, 0), op(0x3c), op(kReturnK, 9)}) == 0);
  CHECK(run({op(kLoadImmediate, 1), op(kLoadXImmediate, 33), op(0x6c), op(kReturnA)}) == 2);
  CHECK(run({op(kLoadImmediate, 4), op(kLoadXImmediate, 33), op(0x7c), op(kReturnA)}) == 2);
}

TEST_CASE("jumps, with a constant and with X") {
  struct Row {
    std::uint16_t code;
    std::uint32_t a, operand;
    bool taken;
  };
  const Row rows[] = {
      {0x15, 5, 5, true},          {0x15, 5, 6, false}, {0x25, 6, 5, true},  {0x25, 5, 5, false},
      {0x25, 0x80000000, 1, true}, {0x35, 5, 5, true},  {0x35, 4, 5, false}, {0x35, 0xffffffff, 0, true},
      {0x45, 6, 2, true},          {0x45, 6, 9, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.code);
    const std::uint32_t due = row.taken ? 1 : 2;
    CHECK(run({op(kLoadImmediate, row.a), op(row.code, row.operand, 1, 2), op(kReturnK, 0), op(kReturnK, 1),
               op(kReturnK, 2)}) == due);
    const auto with_x = static_cast<std::uint16_t>(row.code | 0x08);
    CHECK(run({op(kLoadImmediate, row.a), op(kLoadXImmediate, row.operand), op(with_x, 77, 1, 2), op(kReturnK, 0),
               op(kReturnK, 1), op(kReturnK, 2)}) == due);
  }
  CHECK(run({op(0x05, 1), op(kReturnK, 1), op(kReturnK, 2)}) == 2);
}

TEST_CASE("of all 65536 codes exactly those of seccomp are taken") {
  const std::set<std::uint32_t> legal = {
      0x20, 0x80, 0x00, 0x60, 0x81, 0x01, 0x61, 0x02, 0x03, 0x06, 0x16,  // LD LDX ST RET
      0x07, 0x87, 0x05, 0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d,  // MISC JMP
      0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x54,  // ALU
      0x5c, 0x64, 0x6c, 0x74, 0x7c, 0xa4, 0xac, 0x84};
  for (std::uint32_t code = 0; code <= 0xffff; ++code) {
    BpfProgram program(8, op(kReturnK));
    program[0] = op(0x02, 4);
    program[1] = op(code, 4);
    const std::string seen = refusal(program);
    if (legal.contains(code))
      CHECK_MESSAGE(seen == "accepted", code);
    else
      CHECK_MESSAGE(seen.ends_with(", k 0x4): a seccomp filter may not use it"), code);
  }
  CHECK(refusal({op(0x94, 3), op(kReturnA)}) ==
        "check the seccomp program: instruction 0 (code 0x94, k 0x3): a seccomp filter may not use it");  // modulo
}

TEST_CASE("malformed programs are refused, each for its reason") {
  const std::string check = "check the seccomp program: ";
  CHECK(refusal({}) == check + "1 to 4096 instructions are due, there are 0");
  CHECK(refusal(BpfProgram(4097, op(kReturnK))) == check + "1 to 4096 instructions are due, there are 4097");
  CHECK(refusal(BpfProgram(4096, op(kReturnK))) == "accepted");
  const auto first = [&](const BpfInstruction& instruction) {
    const std::string seen = refusal({instruction, op(kReturnK)});
    REQUIRE_MESSAGE(seen.starts_with(check + "instruction 0 ("), seen);
    return seen.substr(seen.find("): ") + 3);
  };
  CHECK(first(op(kLoadWord, 2)) == "it loads outside the words of seccomp_data");
  CHECK(first(op(kLoadWord, 64)) == "it loads outside the words of seccomp_data");
  CHECK(first(op(kLoadWord, 0xfffffffc)) == "it loads outside the words of seccomp_data");
  for (const std::uint32_t memory : {0x60, 0x61, 0x02, 0x03})
    CHECK(first(op(memory, 16)) == "there are 16 memory words");
  for (const std::uint32_t memory : {0x60, 0x61})
    CHECK(first(op(memory, 3)) == "it reads a memory word that was not written");
  CHECK(first(op(0x34, 0)) == "it divides by zero");
  for (const std::uint32_t shift : {0x64, 0x74}) CHECK(first(op(shift, 32)) == "it shifts by more than 31 bits");
  CHECK(first(op(0x05, 1)) == "it jumps out of the program");
  CHECK(first(op(0x05, 0xffffffff)) == "it jumps out of the program");
  for (const std::uint32_t jump : {0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d}) {
    CHECK(first(op(jump, 0, 1, 0)) == "it jumps out of the program");
    CHECK(first(op(jump, 0, 0, 255)) == "it jumps out of the program");
  }
  CHECK(refusal({op(kReturnK), op(kLoadImmediate, 1)}) ==
        check + "instruction 1 (code 0x0, k 0x1): the last one does not return");
  CHECK(refusal({op(kReturnK), op(0x15, 0, 0, 0)}) ==
        check + "instruction 1 (code 0x15, k 0x0): it jumps out of the program");
}

TEST_CASE("a memory word written on one path only may not be read after both") {
  const BpfProgram one_path = {op(kLoadWord, 0), op(0x15, 1, 0, 1), op(0x02, 0), op(0x60, 0), op(kReturnA)};
  CHECK(refusal(one_path) ==
        "check the seccomp program: instruction 3 (code 0x60, k 0x0): it reads a memory word that was not written");
  const BpfProgram both_paths = {op(kLoadWord, 0), op(0x02, 0), op(0x15, 1, 0, 1),
                                 op(0x02, 0),      op(0x60, 0), op(kReturnA)};
  CHECK(refusal(both_paths) == "accepted");
  // Past an unconditional jump nothing falls through.
  const BpfProgram jumped = {op(0x02, 0), op(0x05, 1), op(0x60, 1), op(0x60, 0), op(kReturnA)};
  CHECK(refusal(jumped) == "accepted");
}

std::set<std::uint32_t> answers(const BpfProgram& program, const Facts& facts) {
  REQUIRE(check_program(program).has_value());
  const auto paths = follow(program, facts);
  REQUIRE_MESSAGE(paths.has_value(), paths.error().message);
  std::set<std::uint32_t> found;
  for (const Path& path : *paths) found.insert(path.answer);
  return found;
}

using Answers = std::set<std::uint32_t>;
constexpr std::uint32_t kArgument = 16;  // offset of word 4, the first argument's low half

TEST_CASE("unknown words take every path") {
  const BpfProgram program = {op(kLoadWord, kArgument), op(0x15, 3, 0, 1), op(kReturnK, 1),
                              op(0x25, 7, 0, 1),        op(kReturnK, 2),   op(kReturnK, 3)};
  Facts facts;
  CHECK(answers(program, facts) == Answers{1, 2, 3});
  facts[4] = {.mask = ~0U, .value = 3, .differs = {}};
  CHECK(answers(program, facts) == Answers{1});
  facts[4].value = 9;
  CHECK(answers(program, facts) == Answers{2});
}

TEST_CASE("a path remembers what it has asked") {
  // The word is asked again, behind a mask, and cannot answer otherwise.
  const BpfProgram equal = {op(kLoadWord, kArgument), op(0x15, 0x12, 0, 4), op(kLoadWord, kArgument), op(0x54, 0x0f),
                            op(0x15, 2, 0, 2),        op(kReturnK, 1),      op(kReturnK, 2),          op(kReturnK, 3)};
  CHECK(answers(equal, Facts{}) == Answers{1, 2});
  const BpfProgram different = {op(kLoadWord, kArgument), op(0x54, 0xf0),       op(0x15, 0x30, 0, 1), op(kReturnK, 1),
                                op(kLoadWord, kArgument), op(0x15, 0x35, 0, 1), op(kReturnK, 9),      op(kReturnK, 2)};
  CHECK(answers(different, Facts{}) == Answers{1, 2});  // 0x35 has 0x30 in its upper half: 9 is out of reach
  const BpfProgram set = {op(kLoadWord, kArgument), op(0x45, 0x80, 0, 3), op(kLoadWord, kArgument),
                          op(0x15, 0x7f, 0, 1),     op(kReturnK, 9),      op(kReturnK, 1)};
  CHECK(answers(set, Facts{}) == Answers{1});  // 0x7f does not have the bit
  const BpfProgram never = {op(kLoadWord, kArgument), op(0x54, 0x0f), op(0x15, 0x10, 0, 1), op(kReturnK, 9),
                            op(kReturnK, 1)};
  CHECK(answers(never, Facts{}) == Answers{1});  // no masked word has a bit outside its mask
}

TEST_CASE("facts of two paths agree or do not") {
  const auto agree = [](const WordFacts& one, const WordFacts& two) {
    Facts a, b;
    a[5] = one;
    b[5] = two;
    Facts c = b;
    const bool there = add_facts(b, a);
    CHECK(add_facts(a, c) == there);
    return there;
  };
  const WordFacts low{.mask = 0xff, .value = 0x12, .differs = {}}, high{.mask = 0xff00, .value = 0x1200, .differs = {}};
  CHECK(agree(low, high));
  CHECK(agree(low, {}));
  CHECK(!agree(low, {.mask = 0x0f, .value = 0x03, .differs = {}}));
  CHECK(agree(low, {.mask = 0x0f, .value = 0x02, .differs = {}}));
  CHECK(!agree(low, {.mask = 0, .value = 0, .differs = {{0xff, 0x12}}}));
  CHECK(!agree(low, {.mask = 0, .value = 0, .differs = {{0x0f, 0x02}}}));
  CHECK(agree(low, {.mask = 0, .value = 0, .differs = {{0xff, 0x13}, {0xffff, 0x12}}}));
  CHECK(!agree(low, {.mask = 0xff00, .value = 0, .differs = {{0xffff, 0x12}}}));
}

TEST_CASE("what is calculated from an unknown word is unknown, and returning it counts as allowed") {
  CHECK(answers({op(kLoadWord, kArgument), op(kReturnA)}, Facts{}) == Answers{0x7fff0000});
  CHECK(answers({op(kLoadWord, kArgument), op(0x04, 1), op(0x02, 1), op(kLoadImmediate, 0), op(0x60, 1), op(0x07),
                 op(0x87), op(0x15, 0, 0, 1), op(kReturnK, 1), op(kReturnK, 2)},
                Facts{}) == Answers{1, 2});
  // Dividing by it may be dividing by zero.
  CHECK(answers({op(kLoadWord, kArgument), op(0x07), op(kLoadImmediate, 8), op(0x3c), op(kReturnK, 5)}, Facts{}) ==
        Answers{0, 5});
}

TEST_CASE("a program with too many paths is an error, not a guess") {
  BpfProgram program;
  for (std::uint32_t i = 0; i < 32; ++i) {
    program.push_back(op(kLoadWord, kArgument));
    program.push_back(op(0x45, 1U << i, 0, 1));
    program.push_back(op(0x04, 1));
  }
  program.push_back(op(kReturnK));
  const auto result = follow(program, Facts{});
  REQUIRE(!result.has_value());
  CHECK(result.error().message == "follow the seccomp program: it has too many paths");
}

}  // namespace
}  // namespace benchsand
