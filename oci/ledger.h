// The ledger: calls that matter are not refused silently in the filter but sent to the supervisor, which answers each with
// the errno of its layer and counts it. Which calls these are is said here and nowhere else; a call that the profile allows is
// not among them, and a profile's `refuse_with` may give one another errno.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "oci/seccomp.h"

namespace benchsand {

// When a notification is due: always, or when (arg[index] & mask) == value, or when arg[index] != value.
struct LedgerCondition {
  enum class Kind { always, masked_equal, not_equal } kind = Kind::always;
  std::uint32_t index = 0;
  std::uint64_t mask = 0, value = 0;
};

struct LedgerRule {
  std::string call;
  int errno_value = 0;
  LedgerCondition condition;
};

// The rules that make a filter notify what `rules` do not allow. Kind usage when a call that must be counted is allowed for
// arguments whose complement no libseccomp rule can say.
Result<std::vector<LedgerRule>> ledger_rules(const SeccompRules& rules);

// Calls of the ledger that a profile allows all the same, other than for AF_UNIX sockets: "setresuid mknodat"; empty for none.
std::string trusted_calls(const SeccompRules& rules);

// The calls that the supervisor lets run: the door's execve and execveat, and exit_group. No others, ever.
bool is_let_run(int call);

using CallArguments = std::array<std::uint64_t, 6>;

// What decided the refusal, in the field's words: "AF_INET", "CLONE_NEWUSER CLONE_NEWNET", "PR_SET_SECCOMP"; empty when nothing.
std::string deciding_argument(int call, const CallArguments& arguments);

struct RefusedCalls {
  std::string call, argument;
  int errno_value = 0;
  std::uint64_t count = 0;
};

// Caps on notifications, from the profile. A refused call costs the supervisor some 10 us that no cgroup of the run is charged for.
struct RefusalCaps {
  std::uint64_t total = 0;       // refused calls of a run
  std::uint64_t per_second = 0;  // notified calls of any kind within one second
  bool operator==(const RefusalCaps&) const = default;
};

class Ledger {
 public:
  // The rules must have passed check_seccomp.
  Ledger(const SeccompRules& rules, const RefusalCaps& caps);

  // is_let_run, unless the rules are those of `benchsand learn`, which has no score: then every call, and no flood ends the run.
  bool lets_run(int call) const { return learn_ || is_let_run(call); }
  // Negative for a call that nobody expects here: refused all the same, with the default errno.
  int errno_for(int call) const;
  // After the kernel has taken the answer: a notification that a signal voided was never answered.
  void count(int call, const CallArguments& arguments);
  // A signal came between question and answer: the call was interrupted, and nobody knows whether it is made again.
  void count_voided() { ++voided_; }
  // Every notification, at its time. True once a cap is passed.
  bool notified(std::uint64_t now_us);

  std::uint64_t total() const { return total_; }
  std::uint64_t voided() const { return voided_; }
  std::uint64_t sockets() const;              // socket and socketpair
  std::vector<RefusedCalls> entries() const;  // sorted by call and argument

 private:
  RefusalCaps caps_;
  bool learn_ = false;
  int default_errno_ = 0;
  std::map<int, int> errnos_;
  // A candidate chooses arguments freely; what would be one entry too many is counted without its argument.
  std::map<std::tuple<int, std::string>, std::uint64_t> counts_;
  std::uint64_t total_ = 0, voided_ = 0, second_began_us_ = 0, in_this_second_ = 0;
};

}  // namespace benchsand
