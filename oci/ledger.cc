#include "oci/ledger.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace benchsand {

namespace {

struct Layer {
  std::string_view errno_name;
  std::vector<std::string_view> calls;
};

// One errno for each layer, so that the errno tells who refused: EACCES for the network. A cgroup's BPF program answers EPERM
// there and an empty network namespace ENETUNREACH. Everything else is EPERM, as if the privilege were missing.
const std::vector<Layer>& layers() {
  static const std::vector<Layer> all = {
      {"EACCES",
       {"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg"}},
      {"EPERM",
       {
           // mounts and roots
           "mount",
           "umount2",
           "pivot_root",
           "chroot",
           "move_mount",
           "open_tree",
           "fsopen",
           "fsconfig",
           "fsmount",
           "fspick",
           "mount_setattr",
           "swapon",
           "swapoff",
           "quotactl",
           "quotactl_fd",
           "mknod",
           "mknodat",
           // namespaces
           "unshare",
           "setns",
           "clone",
           // other processes
           "ptrace",
           "process_vm_readv",
           "process_vm_writev",
           "pidfd_getfd",
           "kcmp",
           "move_pages",
           "migrate_pages",
           // interfaces of the kernel that need trust, and keys
           "bpf",
           "perf_event_open",
           "userfaultfd",
           "io_uring_setup",
           "io_uring_enter",
           "io_uring_register",
           "keyctl",
           "add_key",
           "request_key",
           "fanotify_init",
           "memfd_create",
           "memfd_secret",
           "syslog",
           "lookup_dcookie",
           // the kernel itself
           "init_module",
           "finit_module",
           "delete_module",
           "kexec_load",
           "kexec_file_load",
           "reboot",
           "acct",
           "iopl",
           "ioperm",
           "modify_ldt",
           "personality",
           "settimeofday",
           "clock_settime",
           "adjtimex",
           "clock_adjtime",
           "sethostname",
           "setdomainname",
           // files by handle, and who one is
           "name_to_handle_at",
           "open_by_handle_at",
           "setuid",
           "setgid",
           "setreuid",
           "setregid",
           "setresuid",
           "setresgid",
           "setfsuid",
           "setfsgid",
           "setgroups",
           "capset",
           // a filter of its own could answer before the supervisor sees a call
           "seccomp",
       }},
  };
  return all;
}

struct NamedValue {
  std::uint64_t value;
  std::string_view name;
};

// Of a call that is allowed for some values, these others are counted; the rest is refused in the filter.
struct Option {
  std::string_view call;
  std::uint32_t index;
  NamedValue option;
};
constexpr Option kOptions[] = {
    {"prctl", 0, {22, "PR_SET_SECCOMP"}},
    {"ioctl", 1, {0x5412, "TIOCSTI"}},  // types into somebody else's terminal, as does TIOCLINUX
    {"ioctl", 1, {0x541c, "TIOCLINUX"}},
};

constexpr NamedValue kNamespaceFlags[] = {
    {0x80, "CLONE_NEWTIME"},      {0x20000, "CLONE_NEWNS"},     {0x2000000, "CLONE_NEWCGROUP"},
    {0x4000000, "CLONE_NEWUTS"},  {0x8000000, "CLONE_NEWIPC"},  {0x10000000, "CLONE_NEWUSER"},
    {0x20000000, "CLONE_NEWPID"}, {0x40000000, "CLONE_NEWNET"},
};
constexpr NamedValue kFamilies[] = {
    {0, "AF_UNSPEC"},   {1, "AF_UNIX"},    {2, "AF_INET"},  {3, "AF_AX25"},   {4, "AF_IPX"},   {10, "AF_INET6"},
    {16, "AF_NETLINK"}, {17, "AF_PACKET"}, {21, "AF_RDS"},  {29, "AF_CAN"},   {30, "AF_TIPC"}, {31, "AF_BLUETOOTH"},
    {37, "AF_CAIF"},    {38, "AF_ALG"},    {39, "AF_NFC"},  {40, "AF_VSOCK"}, {41, "AF_KCM"},  {42, "AF_QIPCRTR"},
    {43, "AF_SMC"},     {44, "AF_XDP"},    {45, "AF_MCTP"},
};
constexpr std::uint64_t kAllBits = ~std::uint64_t{0}, kLowHalf = 0xffffffff;
constexpr std::size_t kMostEntries = 256;
constexpr std::uint64_t kSecondUs = 1'000'000;

const ArgumentRule* allowed_if(const SeccompRules& rules, std::string_view call) {
  for (const ArgumentRule& rule : rules.allow_if)
    if (rule.call == call) return &rule;
  return nullptr;
}

bool stands_in(const std::vector<std::string>& list, std::string_view call) {
  return std::find(list.begin(), list.end(), call) != list.end();
}

Result<int> errno_of(const SeccompRules& rules, std::string_view call, std::string_view layer) {
  for (const auto& [name, calls] : rules.refuse_with)
    if (stands_in(calls, call)) return errno_number(name);
  return errno_number(std::string(layer));
}

// What is left when `allowed` is taken away. libseccomp has no "masked not equal": a mask that must be zero becomes one rule a bit.
Result<std::vector<LedgerCondition>> complement(const ArgumentRule& allowed) {
  using Kind = LedgerCondition::Kind;
  if (allowed.values.size() == 1 && allowed.mask == kAllBits)
    return std::vector<LedgerCondition>{{Kind::not_equal, allowed.index, 0, allowed.values.front()}};
  if (allowed.values.size() != 1 || allowed.values.front() != 0)
    return usage(
        "seccomp: allow_if: '" + allowed.call +
        "' must be counted when it is refused, so it can be allowed for one unmasked value or for a mask that is 0");
  std::vector<LedgerCondition> conditions;
  for (std::uint64_t bit = 1; bit != 0; bit <<= 1)
    if ((allowed.mask & bit) != 0) conditions.push_back({Kind::masked_equal, allowed.index, bit, bit});
  return conditions;
}

Result<void> add_call(const SeccompRules& rules, std::string_view call, std::string_view layer,
                      std::vector<LedgerRule>& ledger) {
  if (stands_in(rules.allow, call)) return {};
  const int number = TRY(errno_of(rules, call, layer));
  const ArgumentRule* allowed = allowed_if(rules, call);
  const auto conditions = allowed ? TRY(complement(*allowed)) : std::vector<LedgerCondition>{{}};
  for (const auto& condition : conditions) ledger.push_back({std::string(call), number, condition});
  return {};
}

Result<void> add_option(const SeccompRules& rules, const Option& option, std::vector<LedgerRule>& ledger) {
  const ArgumentRule* allowed = allowed_if(rules, option.call);
  const bool counted_already = std::any_of(ledger.begin(), ledger.end(), [&](const LedgerRule& rule) {
    return rule.call == option.call && rule.condition.kind == LedgerCondition::Kind::always;
  });
  if (counted_already || stands_in(rules.allow, option.call)) return {};
  // An option that the profile allows, or a rule that looks at another argument, is the profile's decision.
  if (allowed &&
      (allowed->index != option.index || (allowed->mask & kLowHalf) != kLowHalf ||
       std::find(allowed->values.begin(), allowed->values.end(), option.option.value) != allowed->values.end()))
    return {};
  ledger.push_back({std::string(option.call),
                    TRY(errno_number("EPERM")),
                    {LedgerCondition::Kind::masked_equal, option.index, kLowHalf, option.option.value}});
  return {};
}

std::string name_of(std::span<const NamedValue> names, std::uint64_t value, const std::string& otherwise) {
  for (const auto& [number, name] : names)
    if (number == value) return std::string(name);
  return otherwise;
}

// Of a call that libseccomp has known for ever.
int number_of(std::string_view call) {
  const auto number = call_number(std::string(call));
  return number ? *number : -1;
}

std::string flag_names(std::uint64_t flags) {
  std::string text;
  for (const auto& [bit, name] : kNamespaceFlags)
    if ((flags & bit) != 0) text += (text.empty() ? "" : " ") + std::string(name);
  return text;
}

}  // namespace

Result<std::vector<LedgerRule>> ledger_rules(const SeccompRules& rules) {
  std::vector<LedgerRule> ledger;
  for (const auto& [errno_text, calls] : layers())
    for (const auto call : calls) TRY_VOID(add_call(rules, call, errno_text, ledger));
  for (const auto& option : kOptions) TRY_VOID(add_option(rules, option, ledger));
  return ledger;
}

std::string trusted_calls(const SeccompRules& rules) {
  std::string names;
  for (const auto& [errno_text, calls] : layers())
    for (const auto call : calls) {
      // Socket calls without a socket of another family lead nowhere, and threads need clone.
      if (errno_text == "EACCES" || call == "clone") continue;
      if (stands_in(rules.allow, call) || allowed_if(rules, call) != nullptr)
        names += (names.empty() ? "" : " ") + std::string(call);
    }
  return names;
}

bool is_let_run(int call) {
  static const std::array<int, 3> door = {number_of("execve"), number_of("execveat"), number_of("exit_group")};
  return std::find(door.begin(), door.end(), call) != door.end();
}

// By number: looking up a name takes longer than answering the call.
std::string deciding_argument(int call, const CallArguments& arguments) {
  static const int kSocket = number_of("socket"), kSocketpair = number_of("socketpair"), kClone = number_of("clone"),
                   kUnshare = number_of("unshare"), kSetns = number_of("setns");
  if (call == kSocket || call == kSocketpair)  // the kernel looks at 32 bits of the family
    return name_of(kFamilies, arguments[0] & kLowHalf, "another family");
  if (call == kClone || call == kUnshare) return flag_names(arguments[0]);
  if (call == kSetns) return flag_names(arguments[1]);
  static const std::vector<int> option_calls = [] {
    std::vector<int> numbers;
    for (const auto& option : kOptions) numbers.push_back(number_of(option.call));
    return numbers;
  }();
  for (std::size_t i = 0; i < option_calls.size(); ++i)
    if (option_calls[i] == call && (arguments[kOptions[i].index] & kLowHalf) == kOptions[i].option.value)
      return std::string(kOptions[i].option.name);
  return "";
}

Ledger::Ledger(const SeccompRules& rules, const RefusalCaps& caps) : caps_(caps), learn_(rules.learn) {
  if (const auto standard = errno_number(rules.default_errno)) default_errno_ = *standard;
  if (const auto ledger = ledger_rules(rules))
    for (const auto& rule : *ledger)
      if (const auto number = call_number(rule.call)) errnos_[*number] = rule.errno_value;
}

int Ledger::errno_for(int call) const {
  const auto found = errnos_.find(call);
  return found == errnos_.end() ? default_errno_ : found->second;
}

void Ledger::count(int call, const CallArguments& arguments) {
  ++total_;
  auto key = std::make_tuple(call, deciding_argument(call, arguments));
  if (counts_.size() >= kMostEntries && !counts_.contains(key)) std::get<1>(key) = "any";
  ++counts_[key];
}

bool Ledger::notified(std::uint64_t now_us) {
  if (now_us - second_began_us_ >= kSecondUs) {
    second_began_us_ = now_us;
    in_this_second_ = 0;
  }
  return !learn_ && (++in_this_second_ > caps_.per_second || total_ > caps_.total);
}

std::uint64_t Ledger::sockets() const {
  std::uint64_t sum = 0;
  for (const auto& entry : entries())
    if (entry.call == "socket" || entry.call == "socketpair") sum += entry.count;
  return sum;
}

std::vector<RefusedCalls> Ledger::entries() const {
  std::vector<RefusedCalls> list;
  for (const auto& [key, count] : counts_)
    list.push_back({call_name(std::get<0>(key)), std::get<1>(key), errno_for(std::get<0>(key)), count});
  std::sort(list.begin(), list.end(), [](const RefusedCalls& a, const RefusedCalls& b) {
    return std::tie(a.call, a.argument) < std::tie(b.call, b.argument);
  });
  return list;
}

}  // namespace benchsand
