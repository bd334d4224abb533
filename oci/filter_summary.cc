// What an attached filter does, and whether it does what was meant.
#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "oci/bpf_eval.h"
#include "oci/bpf_machine.h"
#include "oci/ledger.h"
#include "oci/sha256.h"

namespace benchsand {
namespace {

constexpr std::int32_t kLastOld = 334, kFirstNew = 424, kLastNew = 469;  // x86-64 call numbers of Linux 6.18
constexpr std::int32_t kBeyond = 600;        // x32 has numbers of its own up to 547, and nothing has higher ones
constexpr std::uint32_t kMostFamilies = 64;  // AF_MAX is 46
constexpr int kSocketCall = 41;
constexpr std::uint32_t kUnixFamily = 1;

// SECCOMP_RET_*: the upper half is the action, the lower its data.
constexpr std::uint32_t kActionMask = 0xffff0000;
constexpr std::uint32_t kReturnTrap = 0x00030000, kReturnErrno = 0x00050000, kReturnNotify = 0x7fc00000,
                        kReturnTrace = 0x7ff00000, kReturnLog = 0x7ffc0000, kReturnAllow = 0x7fff0000;
constexpr int kEnosys = 38;

enum class Effect { allow, notify, refuse, trap, kill };

struct Answer {
  Effect effect = Effect::kill;
  int errno_value = 0;  // for refuse
  auto operator<=>(const Answer&) const = default;
};
using Answers = std::set<Answer>;

Answer answer_of(std::uint32_t value) {
  switch (value & kActionMask) {
    case kReturnAllow:
    case kReturnLog:
      return {Effect::allow};
    case kReturnTrace:
      return {Effect::allow};  // a tracer decides; there should be none
    case kReturnNotify:
      return {Effect::notify};
    case kReturnErrno:
      return {Effect::refuse, static_cast<int>(value & ~kActionMask)};
    case kReturnTrap:
      return {Effect::trap};
    default:
      return {Effect::kill};  // both kills, and what the kernel does with an unknown action
  }
}

std::string to_words(const Answer& answer) {
  switch (answer.effect) {
    case Effect::allow:
      return "allow";
    case Effect::notify:
      return "notify";
    case Effect::refuse:
      return errno_name(answer.errno_value);
    case Effect::trap:
      return "trap";
    case Effect::kill:
      return "kill";
  }
  return "kill";
}

bool has(const Answers& answers, Effect effect) {
  return std::any_of(answers.begin(), answers.end(), [&](const Answer& answer) { return answer.effect == effect; });
}

// The supervisor lets the calls of the door run and refuses every other call that it is asked about.
bool open(std::int32_t nr, const Answers& answers) {
  return has(answers, Effect::allow) || (has(answers, Effect::notify) && is_let_run(nr));
}

bool only_kills(const Answers& answers) {
  return answers == Answers{Answer{Effect::kill}};
}

WordFacts exactly(std::uint32_t value) {
  return {.mask = ~0U, .value = value, .differs = {}};
}

// A question to a filter: a call with any arguments.
Facts question(std::uint32_t arch, std::int32_t nr) {
  Facts facts;
  facts[kArchWord] = exactly(arch);
  facts[kNrWord] = exactly(static_cast<std::uint32_t>(nr));
  return facts;
}

// Any call of an architecture.
Facts foreign(std::uint32_t arch) {
  Facts facts;
  facts[kArchWord] = exactly(arch);
  return facts;
}

Result<Answers> ask(const BpfProgram& program, const Facts& facts) {
  Answers answers;
  for (const Path& path : TRY(follow(program, facts))) answers.insert(answer_of(path.answer));
  return answers;
}

std::vector<std::int32_t> listed_calls() {
  std::vector<std::int32_t> calls;
  for (std::int32_t nr = 0; nr <= kLastOld; ++nr) calls.push_back(nr);
  for (std::int32_t nr = kFirstNew; nr <= kLastNew; ++nr) calls.push_back(nr);
  return calls;
}

std::vector<std::int32_t> unlisted_calls() {
  std::vector<std::int32_t> calls{-1, std::numeric_limits<std::int32_t>::min(), kX32Bit - 1};
  for (std::int32_t nr = kLastOld + 1; nr < kFirstNew; ++nr) calls.push_back(nr);
  for (std::int32_t nr = kLastNew + 1; nr < kBeyond; ++nr) calls.push_back(nr);
  return calls;
}

std::string digest(const BpfProgram& program) {
  std::string bytes;
  for (const BpfInstruction& i : program) {
    bytes += static_cast<char>(i.code & 0xff);
    bytes += static_cast<char>(i.code >> 8);
    bytes += static_cast<char>(i.jt);
    bytes += static_cast<char>(i.jf);
    for (const unsigned shift : {0U, 8U, 16U, 24U}) bytes += static_cast<char>(i.k >> shift & 0xff);
  }
  return sha256_hex(bytes);
}

Result<void> count_calls(const BpfProgram& program, FilterSummary& summary) {
  for (const std::int32_t nr : listed_calls()) {
    const Answers answers = TRY(ask(program, question(kArchX8664, nr)));
    summary.calls += 1;
    summary.refused += open(nr, answers) ? 0 : 1;
    summary.notified += has(answers, Effect::notify) && is_let_run(nr) ? 1 : 0;
    summary.counted += has(answers, Effect::notify) && !is_let_run(nr) ? 1 : 0;
    summary.conditional += has(answers, Effect::allow) && answers.size() > 1 ? 1 : 0;
  }
  for (const std::int32_t nr : unlisted_calls())
    summary.unlisted_open += open(nr, TRY(ask(program, question(kArchX8664, nr)))) ? 1 : 0;
  return {};
}

Result<bool> kills_x32(const BpfProgram& program) {
  for (std::int32_t nr = 0; nr < kBeyond; ++nr)
    if (!only_kills(TRY(ask(program, question(kArchX8664, nr | kX32Bit))))) return false;
  return true;
}

// The kernel looks at the lower half of the family only, so the upper one stays unknown.
Result<std::vector<std::string>> open_families(const BpfProgram& program) {
  std::vector<std::string> families;
  for (std::uint32_t family = 0; family < kMostFamilies; ++family) {
    if (family == kUnixFamily) continue;
    Facts facts = question(kArchX8664, kSocketCall);
    facts[kFirstArgWord] = exactly(family);
    if (open(kSocketCall, TRY(ask(program, facts)))) families.push_back(std::to_string(family));
  }
  return families;
}

// The calls that the rules name. Errnos of the others may differ.
Result<std::set<std::int32_t>> named_calls(const SeccompRules& rules) {
  std::set<std::int32_t> named;
  std::vector<std::string> names = rules.allow;
  names.insert(names.end(), rules.notify.begin(), rules.notify.end());
  for (const ArgumentRule& rule : rules.allow_if) names.push_back(rule.call);
  for (const auto& [errno_text, calls] : rules.refuse_with) names.insert(names.end(), calls.begin(), calls.end());
  for (const std::string& name : names) named.insert(TRY(call_number(name)));
  return named;
}

// Which arguments a path is about: " with argument 1 (low half) & 0xffffffff = 0x5412".
std::string arguments(const Facts& facts) {
  std::string text;
  for (std::size_t word = kFirstArgWord; word < kDataWords; ++word) {
    if (facts[word].mask == 0) continue;
    const std::size_t offset = word - kFirstArgWord;
    text += (text.empty() ? " with argument " : ", argument ") + std::to_string(offset / 2);
    text += offset % 2 == 0 ? " (low half) & " : " (high half) & ";
    text += hexadecimal(facts[word].mask) + " = " + hexadecimal(facts[word].value);
  }
  return text;
}

// How much of a refusal must be equal.
enum class Exactness {
  errno_too,     // for calls that the rules name
  enosys_too,    // for other calls ENOSYS may stand for the default errno
  refused_only,  // for numbers that no kernel has, any refusal or kill
};

class Comparison {
 public:
  Comparison(const BpfProgram& a, const BpfProgram& b, int standard_errno) : a_(a), b_(b), standard_(standard_errno) {}

  // "" when no data with these facts gets answers that differ, else "WITH WHICH ARGUMENTS: ANSWER, expected ANSWER".
  Result<std::string> differs(const Facts& facts, Exactness exactness) const {
    const std::vector<Path> in_b = TRY(follow(b_, facts));
    for (const Path& path : TRY(follow(a_, facts)))
      for (const Path& other : in_b) {
        const Answer seen = normal(answer_of(path.answer), exactness), due = normal(answer_of(other.answer), exactness);
        Facts both = path.facts;
        if (seen != due && add_facts(both, other.facts))
          return arguments(both) + ": " + to_words(seen) + ", expected " + to_words(due);
      }
    return std::string();
  }

 private:
  Answer normal(const Answer& answer, Exactness exactness) const {
    const bool passes = answer.effect == Effect::allow || answer.effect == Effect::notify;
    const bool like_standard = (exactness == Exactness::refused_only && !passes) ||
                               (exactness == Exactness::enosys_too && answer == Answer{Effect::refuse, kEnosys});
    return like_standard ? Answer{Effect::refuse, standard_} : answer;
  }

  const BpfProgram& a_;
  const BpfProgram& b_;
  int standard_;
};

// Names are made only for a difference: looking one up is slow.
#define RETURN_IF_DIFFERENT(what, expression) \
  if (const std::string difference = TRY(expression); !difference.empty()) return (what) + difference

Result<std::string> compare_all(const Comparison& comparison, const std::set<std::int32_t>& named) {
  for (const std::int32_t nr : listed_calls()) {
    const Exactness exactness = named.contains(nr) ? Exactness::errno_too : Exactness::enosys_too;
    RETURN_IF_DIFFERENT(call_name(nr), comparison.differs(question(kArchX8664, nr), exactness));
  }
  for (const std::int32_t nr : unlisted_calls())
    RETURN_IF_DIFFERENT(call_name(nr), comparison.differs(question(kArchX8664, nr), Exactness::refused_only));
  for (std::int32_t nr = 0; nr < kBeyond; ++nr)
    RETURN_IF_DIFFERENT("x32 " + call_name(nr),
                        comparison.differs(question(kArchX8664, nr | kX32Bit), Exactness::errno_too));
  const std::string i386 = "i386 calls", others = "calls of another architecture";
  RETURN_IF_DIFFERENT(i386, comparison.differs(foreign(kArchI386), Exactness::errno_too));
  RETURN_IF_DIFFERENT(others, comparison.differs(foreign(0), Exactness::errno_too));
  return std::string();
}

}  // namespace

Result<FilterSummary> summarize_filter(const BpfProgram& program) {
  TRY_VOID(check_program(program));
  FilterSummary summary;
  TRY_VOID(count_calls(program, summary));
  summary.i386_killed = only_kills(TRY(ask(program, foreign(kArchI386))));
  summary.x32_killed = TRY(kills_x32(program));
  summary.open_families = TRY(open_families(program));
  summary.sha256 = digest(program);
  return summary;
}

Result<std::string> filter_difference(const BpfProgram& a, const BpfProgram& b, const SeccompRules& rules) {
  TRY_VOID(check_program(a));
  TRY_VOID(check_program(b));
  if (a == b) return std::string();
  const Comparison comparison(a, b, TRY(errno_number(rules.default_errno)));
  const std::set<std::int32_t> named = TRY(named_calls(rules));
  return compare_all(comparison, named);
}

}  // namespace benchsand
