// Which refused calls are counted, how they are named, and when there are too many.
#include "oci/ledger.h"

#include <doctest/doctest.h>

#include <set>

#include "oci/bpf_eval.h"
#include "tests/unit/seccomp_rules.h"

namespace benchsand {
namespace {

constexpr std::uint32_t kNotify = 0x7fc00000;
constexpr RefusalCaps kCaps = {1000, 100};

int number(const std::string& call) {
  return *call_number(call);
}

std::set<std::string> counted_calls(const SeccompRules& rules) {
  const auto ledger = ledger_rules(rules);
  REQUIRE(ledger.has_value());
  std::set<std::string> calls;
  for (const auto& rule : *ledger) calls.insert(rule.call);
  return calls;
}

TEST_CASE("the calls that must be counted when a profile does not allow them") {
  const auto calls = counted_calls(captured_rules());
  for (const char* call : {"socket",
                           "socketpair",
                           "connect",
                           "bind",
                           "sendto",
                           "mount",
                           "umount2",
                           "pivot_root",
                           "move_mount",
                           "open_tree",
                           "fsopen",
                           "mount_setattr",
                           "unshare",
                           "setns",
                           "clone",
                           "ptrace",
                           "process_vm_readv",
                           "pidfd_getfd",
                           "kcmp",
                           "bpf",
                           "perf_event_open",
                           "io_uring_setup",
                           "io_uring_enter",
                           "keyctl",
                           "add_key",
                           "request_key",
                           "userfaultfd",
                           "init_module",
                           "finit_module",
                           "delete_module",
                           "kexec_load",
                           "kexec_file_load",
                           "reboot",
                           "personality",
                           "seccomp",
                           "prctl",
                           "name_to_handle_at",
                           "open_by_handle_at",
                           "setuid",
                           "capset",
                           "chroot",
                           "memfd_create"}) {
    CAPTURE(call);
    CHECK(calls.contains(call));
  }
  // Every libc calls it for every thread and takes ENOSYS for an answer: counting it would count nothing of interest.
  CHECK_FALSE(calls.contains("clone3"));
}

TEST_CASE("what a profile allows is not in the ledger, and every other argument of it is") {
  SeccompRules rules = captured_rules();
  rules.allow.push_back("connect");
  rules.refuse_with = {};
  CHECK_FALSE(counted_calls(rules).contains("connect"));
  rules.allow_if = {{.call = "personality", .index = 0, .values = {0xffffffff}}};
  const auto program = compile_seccomp(rules);
  REQUIRE_MESSAGE(program.has_value(), program.error().message);
  const auto answer = [&](const std::string& call, std::uint64_t argument) {
    return *evaluate(*program, {.nr = number(call), .arch = kArchX8664, .args = {argument}});
  };
  CHECK(answer("personality", 0xffffffff) == 0x7fff0000);
  CHECK(answer("personality", 0x40000) == kNotify);
  CHECK(answer("connect", 3) == 0x7fff0000);
  CHECK(answer("clone", 0x11) == kNotify);  // allowed no more at all
}

TEST_CASE("an allowance whose opposite no rule can say is refused") {
  SeccompRules rules = captured_rules();
  rules.allow_if = {{.call = "socket", .values = {1, 16}}};
  rules.refuse_with = {};
  const auto checked = check_seccomp(rules);
  REQUIRE_FALSE(checked.has_value());
  CHECK(
      checked.error().message ==
      "seccomp: allow_if: 'socket' must be counted when it is refused, so it can be allowed for one unmasked value or "
      "for a mask that is 0");
}

TEST_CASE("a profile that allows a call of the ledger is loosened by it") {
  SeccompRules rules = captured_rules();
  CHECK(trusted_calls(rules) == "");
  rules.allow.push_back("ptrace");
  rules.allow.push_back("connect");
  rules.allow_if.push_back({.call = "mknodat", .index = 2, .mask = 0xe000, .values = {0}});
  CHECK(trusted_calls(rules) == "mknodat ptrace");
}

TEST_CASE("only the calls of the door are ever let run") {
  for (const char* call : {"execve", "execveat", "exit_group"}) CHECK(is_let_run(number(call)));
  for (int call = -1; call < 600; ++call)
    CHECK(is_let_run(call) == (call == number("execve") || call == number("execveat") || call == number("exit_group")));
}

TEST_CASE("each call is answered with the errno of its layer, or the profile's own") {
  SeccompRules rules = captured_rules();
  rules.refuse_with = {{"ENOSYS", {"io_uring_setup"}}};
  const Ledger ledger(rules, kCaps);
  for (const char* call : {"socket", "socketpair", "connect", "bind"}) CHECK(ledger.errno_for(number(call)) == 13);
  for (const char* call : {"mount", "unshare", "clone", "ptrace", "prctl", "seccomp"})
    CHECK(ledger.errno_for(number(call)) == 1);
  CHECK(ledger.errno_for(number("io_uring_setup")) == 38);
  CHECK(ledger.errno_for(number("read")) == 1);  // never sent here; refused if it were
  CHECK(ledger.errno_for(-1) == 1);
}

TEST_CASE("what decided is named") {
  const auto named = [](const char* call, CallArguments arguments) {
    return deciding_argument(number(call), arguments);
  };
  CHECK(named("socket", {2, 1}) == "AF_INET");
  CHECK(named("socket", {40, 1}) == "AF_VSOCK");
  CHECK(named("socket", {0x700000011, 1}) == "AF_PACKET");  // the kernel cuts it to 32 bits
  CHECK(named("socket", {77, 1}) == "another family");
  CHECK(named("socketpair", {10}) == "AF_INET6");
  CHECK(named("clone", {0x10000011}) == "CLONE_NEWUSER");
  CHECK(named("unshare", {0x40020000}) == "CLONE_NEWNS CLONE_NEWNET");
  CHECK(named("unshare", {0x200}) == "");
  CHECK(named("setns", {5, 0x40000000}) == "CLONE_NEWNET");
  CHECK(named("setns", {5, 0}) == "");
  CHECK(named("prctl", {22, 2}) == "PR_SET_SECCOMP");
  CHECK(named("ioctl", {0, 0x5412}) == "TIOCSTI");
  CHECK(named("mount", {1, 2, 3}) == "");
}

TEST_CASE("counts are exact, by call and argument") {
  Ledger ledger(captured_rules(), kCaps);
  for (int i = 0; i < 5; ++i) ledger.count(number("socket"), {2});
  for (int i = 0; i < 3; ++i) ledger.count(number("socket"), {10});
  ledger.count(number("socketpair"), {2});
  ledger.count(number("mount"), {});
  CHECK(ledger.total() == 10);
  CHECK(ledger.sockets() == 9);
  const auto entries = ledger.entries();
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].call == "mount");
  CHECK(entries[0].errno_value == 1);
  CHECK(entries[1].argument == "AF_INET");
  CHECK(entries[1].errno_value == 13);
  CHECK(entries[1].count == 5);
  CHECK(entries[2].argument == "AF_INET6");
  CHECK(entries[2].count == 3);
  CHECK(entries[3].call == "socketpair");
}

TEST_CASE("a candidate cannot make the ledger grow without end") {
  Ledger ledger(captured_rules(), kCaps);
  // Every combination of namespace flags, and many calls.
  constexpr std::uint64_t bits[] = {0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000};
  std::uint64_t counted = 0;
  for (const char* call : {"clone", "unshare"})
    for (unsigned set = 0; set < 256; ++set) {
      std::uint64_t flags = 0;
      for (unsigned bit = 0; bit < 8; ++bit) flags |= (set >> bit & 1) != 0 ? bits[bit] : 0;
      ledger.count(number(call), {flags});
      ++counted;
    }
  std::uint64_t sum = 0;
  for (const auto& entry : ledger.entries()) sum += entry.count;
  CHECK(sum == counted);
  CHECK(ledger.total() == counted);
  CHECK(ledger.entries().size() <= 258);
}

TEST_CASE("a flood is one by rate or by total") {
  Ledger by_rate(captured_rules(), {1000, 100});
  for (int i = 0; i < 100; ++i) CHECK_FALSE(by_rate.notified(5'000'000 + i));
  CHECK(by_rate.notified(5'000'200));
  Ledger slow(captured_rules(), {1000, 100});
  for (std::uint64_t i = 0; i < 1000; ++i) {
    CHECK_FALSE(slow.notified(5'000'000 + i * 20'000));
    slow.count(number("mount"), {});
  }
  CHECK_FALSE(slow.notified(90'000'000));
  slow.count(number("mount"), {});
  CHECK(slow.notified(99'000'000));
}

}  // namespace
}  // namespace benchsand
