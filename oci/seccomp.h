// System call rules: a profile's allowlist as data, its OCI form, and its compilation to cBPF.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "oci/result.h"

namespace benchsand {

// Allow `call` when (arg[index] & mask) equals one of `values`. Anything else gets the errno that `refuse_with` gives the
// call, else the default; an errno of its own needs a rule of one unmasked value (libseccomp has no masked "not equal").
// Only equality and masked equality: libseccomp before 2.6 can merge ordered 64-bit comparisons wrongly (GHSA-4q85-33p6-j5g6).
struct ArgumentRule {
  std::string call;
  std::uint32_t index = 0;
  std::uint64_t mask = ~std::uint64_t{0};
  std::vector<std::uint64_t> values;
  bool operator==(const ArgumentRule&) const = default;
};

struct SeccompRules {
  std::string default_errno = "EPERM";  // symbolic, e.g. "EPERM"
  std::vector<std::string> allow;       // unconditionally
  std::vector<ArgumentRule> allow_if;
  std::vector<std::pair<std::string, std::vector<std::string>>> refuse_with;  // errno name -> calls
  std::vector<std::string> notify;  // answered by the supervisor: execve, execveat, exit_group
  // What is not refused is notified and let run, to see what a trusted program calls (learned_profile.h). No profile can say
  // so, runc does not take it, and a run of it is never scored.
  bool learn = false;
  // Nobody answers (oci/without_runtime.h): the calls of the door are allowed, and the filter itself refuses what would be counted.
  bool uncounted = false;
  // What is not notified is let through: a relaxation (relaxation.h), never scored.
  bool open = false;
  bool operator==(const SeccompRules&) const = default;
};

// One classic BPF instruction, as struct sock_filter of linux/filter.h.
struct BpfInstruction {
  std::uint16_t code = 0;
  std::uint8_t jt = 0, jf = 0;
  std::uint32_t k = 0;
  bool operator==(const BpfInstruction&) const = default;
};
using BpfProgram = std::vector<BpfInstruction>;

// errno names that a profile may use ("EPERM", "EACCES", "ENOSYS", ...) to numbers, and back.
Result<int> errno_number(const std::string& name);
std::string errno_name(int number);

// x86-64 call names to numbers, and back ("call 500" for a number that libseccomp does not know).
Result<int> call_number(const std::string& name);
std::string call_name(int number);

// Every name must resolve on x86-64, no call may stand in two places, nothing of the `notify` list may be missing that the
// door needs. Kind usage, naming the call.
Result<void> check_seccomp(const SeccompRules& rules);

// The `linux.seccomp` object of config.json: the same rules for the delegate. An empty `listener` means that nobody
// answers, so the notified calls are plainly allowed. The rules must have passed check_seccomp.
nlohmann::json oci_seccomp_json(const SeccompRules& rules, const std::string& listener);

// The rules compiled by libseccomp for x86-64 only, as the delegate would. i386 and x32 are killed.
// libseccomp before 2.6 writes a program to a descriptor only, so an anonymous memory file lives for the length of the call.
Result<BpfProgram> compile_seccomp(const SeccompRules& rules);

}  // namespace benchsand
