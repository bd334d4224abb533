// What rules a profile may have: each call in one place, and nothing that would let a candidate out of the supervisor's sight.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "oci/ledger.h"
#include "oci/seccomp.h"

namespace benchsand {
namespace {

// The door holds the first exec, and exit_group is where what init leaves behind is counted. The supervisor answers these
// and no others: runc itself calls write and more after it has loaded the filter, and would wait for ever.
constexpr std::array<std::string_view, 3> kDoorCalls{"execve", "execveat", "exit_group"};

constexpr std::uint64_t kPrSetSeccomp = 22, kRlimitCore = 4;
constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

std::string quoted(const std::string& name) {
  return "'" + name + "'";
}

std::unexpected<Error> rule_error(const std::string& text) {
  return usage("seccomp: " + text);
}

// Where each call stands; a call that stands twice would be decided by the order in which a runtime reads the rules.
class Placement {
 public:
  Result<void> place(const std::string& call, const std::string& where) {
    TRY(call_number(call));
    if (!seen_.insert(call).second)
      return rule_error(where + ": " + quoted(call) + " already stands in another place of the rules");
    return {};
  }

 private:
  std::set<std::string> seen_;
};

Result<void> check_notify(const SeccompRules& rules, Placement& placement) {
  for (const std::string& call : rules.notify) {
    TRY_VOID(placement.place(call, "notify"));
    if (std::find(kDoorCalls.begin(), kDoorCalls.end(), call) == kDoorCalls.end())
      return rule_error("notify: the supervisor does not answer " + quoted(call));
  }
  for (const std::string_view call : kDoorCalls)
    if (std::find(rules.notify.begin(), rules.notify.end(), call) == rules.notify.end())
      return rule_error("notify: " + quoted(std::string(call)) + " is missing, the door is held by it");
  return {};
}

// A candidate that may load a filter of its own can answer calls before the supervisor sees them.
Result<void> check_no_own_filter(const ArgumentRule& rule) {
  if (rule.call == "seccomp") return rule_error("'seccomp' would let the candidate load a filter of its own");
  if (rule.call != "prctl") return {};
  const bool option_rule = rule.index == 0 && (rule.mask & 0xffffffff) == 0xffffffff;
  const auto is_set_seccomp = [](std::uint64_t value) { return (value & 0xffffffff) == kPrSetSeccomp; };
  if (!option_rule || std::any_of(rule.values.begin(), rule.values.end(), is_set_seccomp))
    return rule_error("'prctl' must be allowed by its option (arg 0, all 32 bits) and without PR_SET_SECCOMP (22)");
  return {};
}

// At RLIMIT_CORE 0, unlike at the 1 that the bundle sets, a crash starts the host's core_pattern program as root.
Result<void> check_no_core_limit(const ArgumentRule& rule) {
  if (rule.call != "prlimit64" && rule.call != "setrlimit") return {};
  const std::uint32_t resource = rule.call == "prlimit64" ? 1 : 0;
  const bool by_resource = rule.index == resource && (rule.mask & 0xffffffff) == 0xffffffff;
  const auto is_core = [](std::uint64_t value) { return (value & 0xffffffff) == kRlimitCore; };
  if (!by_resource || std::any_of(rule.values.begin(), rule.values.end(), is_core))
    return rule_error(quoted(rule.call) + " must be allowed by its resource (arg " + std::to_string(resource) +
                      ", all 32 bits) and without RLIMIT_CORE (4)");
  return {};
}

Result<void> check_argument_rule(const ArgumentRule& rule) {
  const std::string where = "allow_if: " + quoted(rule.call) + ": ";
  if (rule.index > 5) return rule_error(where + "a call has arguments 0 to 5, not " + std::to_string(rule.index));
  if (rule.mask == 0) return rule_error(where + "the mask is 0, so every argument would match");
  if (rule.values.empty()) return rule_error(where + "no value is given");
  std::set<std::uint64_t> seen;
  for (const std::uint64_t value : rule.values) {
    if ((value & ~rule.mask) != 0)
      return rule_error(where + "value " + std::to_string(value) + " has bits outside the mask and can never match");
    if (!seen.insert(value).second) return rule_error(where + "value " + std::to_string(value) + " stands twice");
  }
  TRY_VOID(check_no_core_limit(rule));
  return check_no_own_filter(rule);
}

Result<void> check_allowed(const SeccompRules& rules, Placement& placement) {
  for (const std::string& call : rules.allow) {
    TRY_VOID(placement.place(call, "allow"));
    const ArgumentRule any{.call = call, .mask = 0, .values = {}};
    TRY_VOID(check_no_core_limit(any));
    TRY_VOID(check_no_own_filter(any));
  }
  for (const ArgumentRule& rule : rules.allow_if) {
    TRY_VOID(placement.place(rule.call, "allow_if"));
    TRY_VOID(check_argument_rule(rule));
  }
  return {};
}

const ArgumentRule* argument_rule(const SeccompRules& rules, const std::string& call) {
  for (const ArgumentRule& rule : rules.allow_if)
    if (rule.call == call) return &rule;
  return nullptr;
}

// A call of allow_if may stand here once more: the errno for its other arguments.
Result<void> check_refused(const SeccompRules& rules, Placement& placement) {
  Placement conditional;
  for (const auto& [name, calls] : rules.refuse_with) {
    TRY(errno_number(name));
    const std::string where = "refuse_with " + name;
    for (const std::string& call : calls) {
      const ArgumentRule* rule = argument_rule(rules, call);
      TRY_VOID((rule ? conditional : placement).place(call, where));
      if (rule && (rule->values.size() != 1 || rule->mask != kAllBits))
        return rule_error(where + ": " + quoted(call) +
                          " is allowed for several or masked values, its errno is the default");
    }
  }
  return {};
}

}  // namespace

Result<void> check_seccomp(const SeccompRules& rules) {
  TRY(errno_number(rules.default_errno));
  Placement placement;
  TRY_VOID(check_notify(rules, placement));
  TRY_VOID(check_allowed(rules, placement));
  TRY_VOID(check_refused(rules, placement));
  TRY(ledger_rules(rules));
  return {};
}

}  // namespace benchsand
