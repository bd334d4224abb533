#include "oci/seccomp.h"

#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "oci/ledger.h"

namespace benchsand {
namespace {

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

enum class Action { allow, notify, count, refuse };  // count: refused by the supervisor, who counts it
enum class Compare { equal, masked_equal, not_equal };

// One line for the kernel: what both the delegate's document and our own compilation are made from.
struct FlatRule {
  std::string call;
  Action action = Action::refuse;
  int errno_value = 0;  // for count and refuse
  bool has_condition = false;
  std::uint32_t index = 0;
  Compare compare = Compare::equal;
  std::uint64_t value = 0;      // the mask, for masked_equal
  std::uint64_t value_two = 0;  // the value, for masked_equal
};

std::string quoted(const std::string& name) {
  return "'" + name + "'";
}

const ArgumentRule* argument_rule(const SeccompRules& rules, const std::string& call) {
  for (const ArgumentRule& rule : rules.allow_if)
    if (rule.call == call) return &rule;
  return nullptr;
}

FlatRule plain_rule(const std::string& call, Action action, int errno_value = 0) {
  FlatRule rule;
  rule.call = call;
  rule.action = action;
  rule.errno_value = errno_value;
  return rule;
}

FlatRule equality_rule(const ArgumentRule& argument, std::uint64_t value) {
  FlatRule rule = plain_rule(argument.call, Action::allow);
  rule.has_condition = true;
  rule.index = argument.index;
  const bool whole = argument.mask == kAllBits;
  rule.compare = whole ? Compare::equal : Compare::masked_equal;
  rule.value = whole ? value : argument.mask;
  rule.value_two = whole ? 0 : value;
  return rule;
}

FlatRule refusal_rule(const SeccompRules& rules, const std::string& call, int errno_value) {
  FlatRule rule = plain_rule(call, Action::refuse, errno_value);
  if (const ArgumentRule* argument = argument_rule(rules, call)) {
    rule.has_condition = true;
    rule.index = argument->index;
    rule.compare = Compare::not_equal;
    rule.value = argument->values.front();
  }
  return rule;
}

FlatRule counted_rule(const LedgerRule& ledger) {
  FlatRule rule = plain_rule(ledger.call, Action::count, ledger.errno_value);
  const LedgerCondition& condition = ledger.condition;
  rule.index = condition.index;
  switch (condition.kind) {
    case LedgerCondition::Kind::always:
      return rule;
    case LedgerCondition::Kind::masked_equal:
      rule.compare = Compare::masked_equal;
      rule.value = condition.mask;
      rule.value_two = condition.value;
      break;
    case LedgerCondition::Kind::not_equal:
      rule.compare = Compare::not_equal;
      rule.value = condition.value;
      break;
  }
  rule.has_condition = true;
  return rule;
}

// What is allowed, and what is sent to the supervisor.
Result<void> flatten_answers(const SeccompRules& rules, std::vector<FlatRule>& flat) {
  for (const std::string& call : rules.notify) flat.push_back(plain_rule(call, Action::notify));
  for (const std::string& call : rules.allow) flat.push_back(plain_rule(call, Action::allow));
  for (const ArgumentRule& argument : rules.allow_if)
    for (const std::uint64_t value : argument.values) flat.push_back(equality_rule(argument, value));
  for (const LedgerRule& ledger : TRY(ledger_rules(rules))) flat.push_back(counted_rule(ledger));
  return {};
}

// Nobody counts: what would be counted is refused in the filter. libseccomp refuses a rule that only repeats the default.
void refuse_uncounted(std::vector<FlatRule>& flat, int standard) {
  std::erase_if(flat, [&](FlatRule& rule) {
    if (rule.action != Action::count) return false;
    rule.action = Action::refuse;
    return rule.errno_value == standard;
  });
}

void answer_in_the_filter(std::vector<FlatRule>& flat, int standard) {
  refuse_uncounted(flat, standard);
  for (FlatRule& rule : flat)
    if (rule.action == Action::notify) rule.action = Action::allow;
}

Result<std::vector<FlatRule>> flatten(const SeccompRules& rules) {
  std::vector<FlatRule> flat;
  const int standard = TRY(errno_number(rules.default_errno));
  if (rules.open) {
    for (const std::string& call : rules.notify) flat.push_back(plain_rule(call, Action::notify));
    return flat;
  }
  if (!rules.learn) TRY_VOID(flatten_answers(rules, flat));
  std::set<std::string> counted;
  for (const FlatRule& rule : flat)
    if (rule.action == Action::count) counted.insert(rule.call);
  for (const auto& [name, calls] : rules.refuse_with) {
    const int number = TRY(errno_number(name));
    if (number == standard && !rules.learn) continue;  // libseccomp refuses a rule that only repeats the default
    for (const std::string& call : calls)
      if (!counted.contains(call)) flat.push_back(refusal_rule(rules, call, number));
  }
  if (rules.uncounted) answer_in_the_filter(flat, standard);
  return flat;
}

const char* oci_name(Action action, bool has_listener) {
  switch (action) {
    case Action::allow:
      return "SCMP_ACT_ALLOW";
    case Action::notify:
      return has_listener ? "SCMP_ACT_NOTIFY" : "SCMP_ACT_ALLOW";
    case Action::count:
      return "SCMP_ACT_NOTIFY";
    case Action::refuse:
      return "SCMP_ACT_ERRNO";
  }
  std::abort();
}

const char* oci_name(Compare compare) {
  switch (compare) {
    case Compare::equal:
      return "SCMP_CMP_EQ";
    case Compare::masked_equal:
      return "SCMP_CMP_MASKED_EQ";
    case Compare::not_equal:
      return "SCMP_CMP_NE";
  }
  std::abort();
}

std::uint32_t libseccomp_action(const FlatRule& rule) {
  switch (rule.action) {
    case Action::allow:
      return SCMP_ACT_ALLOW;
    case Action::notify:
    case Action::count:
      return SCMP_ACT_NOTIFY;
    case Action::refuse:
      return SCMP_ACT_ERRNO(static_cast<std::uint32_t>(rule.errno_value));
  }
  std::abort();
}

scmp_compare libseccomp_compare(Compare compare) {
  switch (compare) {
    case Compare::equal:
      return SCMP_CMP_EQ;
    case Compare::masked_equal:
      return SCMP_CMP_MASKED_EQ;
    case Compare::not_equal:
      return SCMP_CMP_NE;
  }
  std::abort();
}

nlohmann::json oci_rule(const FlatRule& rule, bool has_listener) {
  nlohmann::json json = {{"names", nlohmann::json::array({rule.call})},
                         {"action", oci_name(rule.action, has_listener)}};
  if (rule.action == Action::refuse) json["errnoRet"] = rule.errno_value;
  if (rule.has_condition) {
    json["args"] = nlohmann::json::array(
        {{{"index", rule.index}, {"value", rule.value}, {"valueTwo", rule.value_two}, {"op", oci_name(rule.compare)}}});
  }
  return json;
}

bool share_an_entry(const FlatRule& a, const FlatRule& b) {
  return !a.has_condition && !b.has_condition && a.action == b.action && a.errno_value == b.errno_value;
}

nlohmann::json oci_syscalls(const std::vector<FlatRule>& flat, bool has_listener) {
  nlohmann::json entries = nlohmann::json::array();
  for (std::size_t i = 0; i < flat.size(); ++i) {
    if (i > 0 && share_an_entry(flat[i - 1], flat[i]))
      entries.back()["names"].push_back(flat[i].call);
    else
      entries.push_back(oci_rule(flat[i], has_listener));
  }
  return entries;
}

using Context = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

std::string library_error(const std::string& what, int code) {
  return what + ": libseccomp error " + std::to_string(-code);
}

Result<Context> new_context(const SeccompRules& rules) {
  const auto standard = static_cast<std::uint32_t>(TRY(errno_number(rules.default_errno)));
  const std::uint32_t otherwise = rules.open    ? SCMP_ACT_ALLOW
                                  : rules.learn ? SCMP_ACT_NOTIFY
                                                : SCMP_ACT_ERRNO(standard);
  Context context(seccomp_init(otherwise), seccomp_release);
  if (!context) return fault("start a seccomp filter: libseccomp has no memory");
  if (rules.open)
    for (const std::uint32_t other : {SCMP_ARCH_X86, SCMP_ARCH_X32})
      if (const int code = seccomp_arch_add(context.get(), other); code != 0)
        return fault(library_error("add an architecture to the seccomp filter", code));
  if (seccomp_arch_native() == SCMP_ARCH_X86_64) return context;
  if (const int code = seccomp_arch_add(context.get(), SCMP_ARCH_X86_64); code != 0)
    return fault(library_error("add x86-64 to the seccomp filter", code));
  if (const int code = seccomp_arch_remove(context.get(), SCMP_ARCH_NATIVE); code != 0)
    return fault(library_error("remove the native architecture from the seccomp filter", code));
  return context;
}

Result<void> add_rule(scmp_filter_ctx context, const FlatRule& rule, bool open) {
  const int number = TRY(call_number(rule.call));
  const scmp_arg_cmp condition{rule.index, libseccomp_compare(rule.compare), rule.value, rule.value_two};
  const unsigned int conditions = rule.has_condition ? 1 : 0;
  const auto add = open ? seccomp_rule_add_array : seccomp_rule_add_exact_array;  // exact: of one architecture
  const int code = add(context, libseccomp_action(rule), number, conditions, &condition);
  if (code != 0) return fault(library_error("add a seccomp rule for " + quoted(rule.call), code));
  return {};
}

class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("seccomp-program", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Result<BpfProgram> export_program(scmp_filter_ctx context) {
  static_assert(sizeof(BpfInstruction) == 8, "BpfInstruction is laid out as struct sock_filter");
  const MemoryFile file;
  if (file.fd() < 0) return fault("create a memory file for the seccomp program: the kernel refused");
  if (const int code = seccomp_export_bpf(context, file.fd()); code != 0)
    return fault(library_error("export the seccomp program", code));
  BpfProgram program(4096);  // BPF_MAXINSNS, more than the kernel takes
  const ssize_t bytes = ::pread(file.fd(), program.data(), program.size() * sizeof(BpfInstruction), 0);
  if (bytes <= 0 || bytes % 8 != 0) return fault("read the seccomp program back: it is empty or cut off");
  program.resize(static_cast<std::size_t>(bytes) / sizeof(BpfInstruction));
  return program;
}

}  // namespace

nlohmann::json oci_seccomp_json(const SeccompRules& rules, const std::string& listener) {
  const Result<int> standard = errno_number(rules.default_errno);
  Result<std::vector<FlatRule>> flat = flatten(rules);
  // Rules that were never checked must not become a document without a filter: this one lets nothing run.
  if (!standard || !flat) return nlohmann::json{{"defaultAction", "SCMP_ACT_KILL_PROCESS"}};
  if (listener.empty()) refuse_uncounted(*flat, *standard);
  const char* otherwise = rules.open ? "SCMP_ACT_ALLOW" : rules.learn ? "SCMP_ACT_NOTIFY" : "SCMP_ACT_ERRNO";
  nlohmann::json json = {{"defaultAction", otherwise}, {"architectures", nlohmann::json::array({"SCMP_ARCH_X86_64"})}};
  if (rules.open) json["architectures"] = {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
  if (!rules.learn && !rules.open) json["defaultErrnoRet"] = *standard;
  if (!listener.empty()) json["listenerPath"] = listener;
  json["syscalls"] = oci_syscalls(*flat, !listener.empty());
  return json;
}

Result<BpfProgram> compile_seccomp(const SeccompRules& rules) {
  TRY_VOID(check_seccomp(rules));
  const std::vector<FlatRule> flat = TRY(flatten(rules));
  const Context context = TRY(new_context(rules));
  for (const FlatRule& rule : flat) TRY_VOID(add_rule(context.get(), rule, rules.open));
  return export_program(context.get());
}

}  // namespace benchsand
