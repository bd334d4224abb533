#include "oci/learned_profile.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace benchsand {
namespace {

constexpr std::uint64_t kAllBits = ~std::uint64_t{0}, kLowHalf = 0xffffffff;
constexpr std::uint64_t kUnixFamily = 1, kPrSetSeccomp = 22;

struct NamedValue {
  std::uint64_t value;
  std::string_view name;
};

constexpr NamedValue kRequests[] = {{0x5401, "TCGETS"},   {0x540f, "TIOCGPGRP"},  {0x5413, "TIOCGWINSZ"},
                                    {0x541b, "FIONREAD"}, {0x5421, "FIONBIO"},    {0x5450, "FIONCLEX"},
                                    {0x5451, "FIOCLEX"},  {0x40049409, "FICLONE"}};
constexpr NamedValue kFileCommands[] = {{0, "F_DUPFD"},  {1, "F_GETFD"},           {2, "F_SETFD"}, {3, "F_GETFL"},
                                        {4, "F_SETFL"},  {5, "F_GETLK"},           {6, "F_SETLK"}, {7, "F_SETLKW"},
                                        {8, "F_SETOWN"}, {1030, "F_DUPFD_CLOEXEC"}};
constexpr NamedValue kOptions[] = {
    {1, "PR_SET_PDEATHSIG"},   {3, "PR_GET_DUMPABLE"},  {4, "PR_SET_DUMPABLE"},         {15, "PR_SET_NAME"},
    {16, "PR_GET_NAME"},       {23, "PR_CAPBSET_READ"}, {36, "PR_SET_CHILD_SUBREAPER"}, {38, "PR_SET_NO_NEW_PRIVS"},
    {0x53564d41, "PR_SET_VMA"}};
constexpr NamedValue kArchCodes[] = {
    {0x1001, "ARCH_SET_GS"}, {0x1002, "ARCH_SET_FS"}, {0x1003, "ARCH_GET_FS"}, {0x3001, "ARCH_CET_STATUS"}};
constexpr NamedValue kResources[] = {{3, "RLIMIT_STACK"}, {7, "RLIMIT_NOFILE"}, {9, "RLIMIT_AS"}};
constexpr NamedValue kSocketOptions[] = {{2, "SO_REUSEADDR"}, {7, "SO_SNDBUF"}, {8, "SO_RCVBUF"}};
constexpr NamedValue kFamilies[] = {{kUnixFamily, "AF_UNIX"}};
// Calls of which a profile allows some values only.
struct Deciding {
  std::string_view call;
  std::uint32_t index;
  std::uint64_t mask;
  std::span<const NamedValue> names;
};
const Deciding kDeciding[] = {
    {"socket", 0, kAllBits, kFamilies},
    {"socketpair", 0, kAllBits, kFamilies},
    {"ioctl", 1, kLowHalf, kRequests},
    {"fcntl", 1, kLowHalf, kFileCommands},
    {"prctl", 0, kLowHalf, kOptions},
    {"arch_prctl", 0, kLowHalf, kArchCodes},
    {"prlimit64", 1, kLowHalf, kResources},
    {"setrlimit", 0, kLowHalf, kResources},
    {"setsockopt", 2, kLowHalf, kSocketOptions},
};
// CLONE_NEWTIME NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET
constexpr std::uint64_t kNamespaceFlags = 0x7e020080;
// Of a mode: set for a device, a socket, a link and a directory, not for a FIFO.
constexpr std::uint64_t kNoFifo = 0xe000;

const Deciding* deciding(std::string_view call) {
  for (const Deciding& entry : kDeciding)
    if (entry.call == call) return &entry;
  return nullptr;
}

// What a run under the profile calls beside the program's own: after the filter is in place the delegate goes on until its
// exec. runc's are those of Go's runtime too, some of them only now and then.
struct RuntimeCall {
  std::string_view call, why;
};
constexpr RuntimeCall kRuntimeCalls[] = {
    {"close", "crun, runc"},
    {"wait4", "crun"},
    {"kill", "crun"},
    {"write", "crun, runc"},
    {"read", "runc"},
    {"openat", "runc"},
    {"fstatfs", "runc"},
    {"getdents64", "runc"},
    {"newfstatat", "runc"},
    {"futex", "runc"},
    {"mmap", "runc"},
    {"munmap", "runc"},
    {"madvise", "runc"},
    {"getpid", "runc"},
    {"gettid", "runc"},
    {"tgkill", "runc"},
    {"sched_yield", "runc"},
    {"nanosleep", "runc"},
    {"rt_sigaction", "runc"},
    {"rt_sigprocmask", "runc"},
    {"rt_sigreturn", "runc"},
    {"sigaltstack", "runc"},
    {"clone", "runc"},
    // The vDSO answers these without a call where it can, so nobody sees them while learning.
    {"clock_gettime", "vDSO"},
    {"gettimeofday", "vDSO"},
    {"time", "vDSO"},
    {"clock_getres", "vDSO"},
    // Comes only when a stop signal interrupts a sleep.
    {"restart_syscall", "sleep"},
};
// runc closes on exec what it has open.
constexpr std::uint64_t kRuntimeFcntl[] = {1, 2, 3};

struct Group {
  std::string_view heading, calls;
};

// The order in which a profile lists calls.
constexpr Group kGroups[] = {
    {"files and pipes",
     "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek open openat openat2 "
     "creat close close_range dup dup2 dup3 pipe pipe2 truncate ftruncate fallocate fadvise64 fsync "
     "fdatasync sync syncfs sync_file_range flock sendfile copy_file_range splice tee readahead poll ppoll "
     "select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd "
     "eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime inotify_init "
     "inotify_init1 inotify_add_watch inotify_rm_watch"},
    {"names and metadata",
     "stat lstat fstat newfstatat statx statfs fstatfs access faccessat faccessat2 getdents getdents64 "
     "getcwd chdir fchdir readlink readlinkat mkdir mkdirat rmdir link linkat symlink symlinkat unlink "
     "unlinkat rename renameat renameat2 chmod fchmod fchmodat chown fchown lchown fchownat utime utimes "
     "futimesat utimensat umask getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr "
     "lsetxattr fsetxattr removexattr"},
    {"memory",
     "brk mmap munmap mprotect mremap madvise msync mincore mlock munlock memfd_create pkey_alloc "
     "pkey_free pkey_mprotect get_mempolicy membarrier"},
    {"processes",
     "fork vfork wait4 waitid exit getpid getppid gettid getpgrp getpgid setpgid getsid setsid getuid "
     "geteuid getgid getegid getgroups getresuid getresgid capget uname sysinfo getrusage times getrlimit "
     "setrlimit prlimit64 getpriority setpriority sched_yield sched_getaffinity sched_setaffinity "
     "sched_getparam sched_getscheduler sched_setscheduler sched_get_priority_max sched_get_priority_min "
     "getcpu pidfd_open pidfd_send_signal"},
    {"signals",
     "kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigpending "
     "rt_sigtimedwait rt_sigqueueinfo sigaltstack pause alarm setitimer getitimer timer_create "
     "timer_settime timer_gettime timer_getoverrun timer_delete"},
    {"threads", "futex futex_waitv set_robust_list get_robust_list set_tid_address rseq"},
    {"time and chance",
     "clock_gettime gettimeofday time clock_getres nanosleep clock_nanosleep restart_syscall getrandom"},
    {"sockets of the family AF_UNIX, the only one that can be made",
     "connect bind listen accept accept4 sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg shutdown "
     "getsockname getpeername getsockopt setsockopt"},
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    list.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return list;
}

std::string hex(std::uint64_t value) {
  std::array<char, 16> digits{};
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

// "0x5401" for requests and codes, plain for small numbers.
std::string literal(std::uint64_t value) {
  return value < 4096 ? std::to_string(value) : hex(value);
}

std::string times(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " call" : " calls");
}

struct Line {
  std::string call, comment;
};

class Writer {
 public:
  Writer(const LearnedCalls& calls, const Profile& base) : base_(base) {
    never_.insert(base.seccomp.notify.begin(), base.seccomp.notify.end());
    for (const auto& [name, refused] : learning_rules(base.seccomp).refuse_with)
      for (const auto& call : refused)
        if (!deciding(call)) never_.insert(call);
    for (const auto& [number, use] : calls.uses()) take(number, use);
    for (const RuntimeCall& needed : kRuntimeCalls) need(needed);
  }

  std::string text() {
    std::string text = "seccomp:\n  default: " + base_.seccomp.default_errno + "\n  notify: [";
    for (const auto& call : base_.seccomp.notify) text += (text.back() == '[' ? "" : ", ") + call;
    text += "]\n\n  allow:\n" + allowed() + "\n  allow_if:\n" + conditions();
    if (const std::string refused = refusals(); !refused.empty()) text += "\n  refuse_with:\n" + refused;
    for (const auto& line : beyond_) text += "  # " + line + "\n";
    return text;
  }

 private:
  void take(int number, const LearnedCalls::Use& use) {
    const std::string call = call_name(number);
    if (never_.contains(call)) return;
    if (call_number(call))
      uses_[call] = use;
    else
      beyond_.push_back("number " + std::to_string(number) + ", " + times(use.count) +
                        ": no name in this libseccomp, so no rule can allow it");
  }

  void need(const RuntimeCall& needed) {
    const std::string call(needed.call);
    uses_.try_emplace(call);
    why_[call] = needed.why;
  }

  std::string comment(const std::string& call) const {
    const auto why = why_.find(call);
    const std::uint64_t count = uses_.at(call).count;
    if (why == why_.end()) return times(count);
    if (count > 0) return times(count) + "; " + std::string(why->second);
    return "not seen; " + std::string(why->second);
  }

  std::string lines(const std::vector<std::string>& calls) const {
    std::string text;
    for (const auto& call : calls)
      text +=
          "    - " + call + std::string(call.size() < 22 ? 22 - call.size() : 0, ' ') + " # " + comment(call) + "\n";
    return text;
  }

  std::string allowed() {
    std::set<std::string> left;
    for (const auto& [call, use] : uses_)
      if (!deciding(call) && call != "clone" && call != "mknodat") left.insert(call);
    plain_ = left;
    std::string text;
    for (const Group& group : kGroups) {
      std::vector<std::string> present;
      for (const auto& call : words(group.calls))
        if (left.erase(call) > 0) present.push_back(call);
      if (!present.empty()) text += "    # " + std::string(group.heading) + "\n" + lines(present);
    }
    if (!left.empty()) text += "    # other\n" + lines({left.begin(), left.end()});
    return text;
  }

  std::string conditions() const {
    std::string text;
    // No namespace may be made. glibc makes threads and processes with it.
    text += "    # " + comment("clone") +
            "; CLONE_NEWTIME NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET stay refused\n";
    text += "    - {call: clone, arg: 0, mask: " + hex(kNamespaceFlags) + ", is: [0]}\n";
    if (uses_.contains("mknodat"))
      text += "    # " + comment("mknodat") +
              "; FIFOs and plain files only\n    - {call: mknodat, arg: 2, mask: " + hex(kNoFifo) + ", is: [0]}\n";
    for (const Deciding& rule : kDeciding) text += condition(rule);
    return text;
  }

  std::map<std::uint64_t, std::uint64_t> values_of(const Deciding& rule) const {
    std::map<std::uint64_t, std::uint64_t> values;
    if (const auto used = uses_.find(std::string(rule.call)); used != uses_.end())
      for (const auto& [value, count] : used->second.values) values[value & rule.mask] += count;
    if (rule.call == "fcntl")
      for (const auto value : kRuntimeFcntl) values.try_emplace(value, 0);
    if (rule.call == "prctl") values.erase(kPrSetSeccomp);
    // What no profile grants: RLIMIT_CORE and RLIMIT_CPU, and filters on sockets. runc's runtime asks for its open files.
    if (rule.names.data() == kResources)
      std::erase_if(values, [](const auto& e) { return e.first == 0 || e.first == 4; });
    if (rule.call == "prlimit64") values.try_emplace(7, 0);
    if (rule.call == "setsockopt")
      std::erase_if(values, [](const auto& e) { return e.first == 26 || (e.first >= 50 && e.first <= 52); });
    if (rule.names.data() == kFamilies)
      std::erase_if(values, [](const auto& entry) { return entry.first != kUnixFamily; });
    return values;
  }

  std::string condition(const Deciding& rule) const {
    std::string list, seen;
    for (const auto& [value, count] : values_of(rule)) {
      const auto name = std::find_if(rule.names.begin(), rule.names.end(),
                                     [&](const NamedValue& entry) { return entry.value == value; });
      list += (list.empty() ? "" : ", ") + literal(value);
      seen += (seen.empty() ? "" : ", ") + (name == rule.names.end() ? literal(value) : std::string(name->name)) + " " +
              (count > 0 ? std::to_string(count) : "for runc");
    }
    if (list.empty()) return "";
    const std::string mask = rule.mask == kAllBits ? "" : ", mask: " + hex(rule.mask);
    return "    # " + seen + "\n    - {call: " + std::string(rule.call) + ", arg: " + std::to_string(rule.index) +
           mask + ", is: [" + list + "]}\n";
  }

  // The base's errnos, for what is still refused. One of its own for the other values of a call is possible where one
  // unmasked value is allowed.
  bool keeps_errno(const std::string& call) const {
    if (plain_.contains(call)) return false;
    const Deciding* rule = deciding(call);
    if (call == "clone" || call == "mknodat" || (rule && rule->mask != kAllBits)) return !uses_.contains(call);
    return true;
  }

  std::string refusals() const {
    std::string text;
    for (const auto& [name, calls] : base_.seccomp.refuse_with) {
      std::string list;
      for (const auto& call : calls)
        if (keeps_errno(call)) list += (list.empty() ? "" : ", ") + call;
      if (!list.empty()) text += "    " + name + ": [" + list + "]\n";
    }
    return text;
  }

  const Profile& base_;
  std::map<std::string, LearnedCalls::Use> uses_;
  std::map<std::string, std::string_view> why_;
  std::set<std::string> never_, plain_;
  std::vector<std::string> beyond_;
};

bool starts_key(std::string_view line) {
  return !line.empty() && line.front() != ' ' && line.front() != '#' && line.find(':') != std::string_view::npos;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace

SeccompRules learning_rules(const SeccompRules& base) {
  SeccompRules rules;
  rules.learn = true;
  rules.default_errno = base.default_errno;
  rules.notify = base.notify;
  rules.allow_if = {{.call = "socket", .index = 0, .values = {kUnixFamily}},
                    {.call = "socketpair", .index = 0, .values = {kUnixFamily}}};
  rules.refuse_with = {
      {"EACCES", {"socket", "socketpair"}},
      // Programs fall back from these: to clone, to read and write, to other ways of reading a file.
      {"ENOSYS", {"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"}},
      // Not here: setting ids. Without capabilities they can be set only to those that one has, and GNU make does it.
      {"EPERM", words("mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick "
                      "mount_setattr unshare setns ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp bpf "
                      "perf_event_open userfaultfd keyctl add_key request_key seccomp personality open_by_handle_at "
                      "name_to_handle_at modify_ldt mknod")}};
  return rules;
}

void LearnedCalls::saw(int call, const CallArguments& arguments) {
  Use& use = uses_[call];
  ++use.count;
  static const std::map<int, const Deciding*> by_number = [] {
    std::map<int, const Deciding*> numbers;
    for (const Deciding& entry : kDeciding)
      if (const auto number = call_number(std::string(entry.call))) numbers[*number] = &entry;
    return numbers;
  }();
  if (const auto rule = by_number.find(call); rule != by_number.end())
    ++use.values[arguments[rule->second->index] & rule->second->mask];
}

std::uint64_t LearnedCalls::total() const {
  std::uint64_t sum = 0;
  for (const auto& [call, use] : uses_) sum += use.count;
  return sum;
}

Result<std::string> learned_profile(const LearnedCalls& calls, const Profile& base, const std::string& base_text,
                                    const std::string& name) {
  std::string text =
      "# Learned by `benchsand learn` on profile " + base.name + ": " + times(calls.total()) + ", " +
      std::to_string(calls.uses().size()) +
      " different ones. A comment says how often each was seen. What is marked crun or\n# runc the delegate "
      "itself calls once the filter is in place.\n";
  bool in_seccomp = false, named = false, ruled = false;
  for (const std::string_view line : lines_of(base_text)) {
    if (starts_key(line)) in_seccomp = line.starts_with("seccomp:");
    if (line.starts_with("name:")) {
      text += "name: " + name + "\n";
      named = true;
    } else if (line.starts_with("seccomp:")) {
      text += "\n" + Writer(calls, base).text();
      ruled = true;
    } else if (!in_seccomp && !line.empty()) {
      text += std::string(line) + "\n";
    }
  }
  if (!named || !ruled)
    return usage("write the learned profile: profile '" + base.name +
                 "' has no `name:` or no `seccomp:` at the beginning of a line");
  const auto parsed = parse_profile(text, "the learned profile");
  if (!parsed) return std::unexpected(parsed.error());
  return text;
}

}  // namespace benchsand
