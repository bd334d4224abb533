// Seccomp rules: what is refused as a rule, the delegate's document, and the effect of the compiled program.
#include "oci/seccomp.h"

#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "oci/bpf_eval.h"
#include "tests/unit/seccomp_rules.h"

namespace benchsand {
namespace {

constexpr std::uint32_t kAllow = 0x7fff0000, kNotify = 0x7fc00000, kErrno = 0x00050000, kKill = 0;

template <class T>
std::string message(const Result<T>& result) {
  if (result) return "accepted";
  CHECK(result.error().kind == Error::Kind::usage);
  return result.error().message;
}

SeccompRules small_rules() {
  SeccompRules rules;
  rules.notify = {"execve", "execveat", "exit_group"};
  rules.allow = {"read"};
  return rules;
}

// What is said about small_rules after one change.
std::string said(const std::function<void(SeccompRules&)>& change) {
  SeccompRules rules = small_rules();
  change(rules);
  return message(check_seccomp(rules));
}

TEST_CASE("errno names and numbers") {
  CHECK(errno_number("EPERM") == 1);
  CHECK(errno_number("EACCES") == 13);
  CHECK(errno_number("ENOSYS") == 38);
  CHECK(errno_number("EOPNOTSUPP") == 95);
  for (int number = 0; number < 140; ++number)
    if (const std::string name = errno_name(number); !name.starts_with("errno ")) CHECK(errno_number(name) == number);
  CHECK(errno_name(13) == "EACCES");
  CHECK(errno_name(0) == "errno 0");
  CHECK(errno_name(-1) == "errno -1");
  for (const std::string bad : {"", "eperm", "EPERM ", "1", "ERESTARTSYS", "EINTR"})
    CHECK(message(errno_number(bad)) == "seccomp: unknown errno name '" + bad + "'");
}

TEST_CASE("call names and numbers") {
  CHECK(call_number("read") == 0);
  CHECK(call_number("execve") == 59);
  CHECK(call_number("clone3") == 435);
  CHECK(call_name(59) == "execve");
  CHECK(call_name(5000) == "call 5000");
  CHECK(call_name(-1) == "call -1");
  // Misspelt, of another architecture, empty, cut by a NUL.
  for (const std::string bad : {"raed", "umount", "send", "", "READ"})
    CHECK(message(call_number(bad)) == "seccomp: unknown system call '" + bad + "' on x86-64");
  CHECK(message(call_number(std::string("read\0x", 6))).starts_with("seccomp: unknown system call 'read"));
}

TEST_CASE("good rules are accepted") {
  CHECK(message(check_seccomp(small_rules())) == "accepted");
  CHECK(message(check_seccomp(captured_rules())) == "accepted");
}

TEST_CASE("each kind of bad rule is refused by name") {
  CHECK(said([](auto& r) { r.default_errno = "EPRM"; }) == "seccomp: unknown errno name 'EPRM'");
  CHECK(said([](auto& r) { r.allow = {"raed"}; }) == "seccomp: unknown system call 'raed' on x86-64");
  CHECK(said([](auto& r) { r.notify.push_back("opn"); }) == "seccomp: unknown system call 'opn' on x86-64");
  CHECK(said([](auto& r) { r.refuse_with = {{"EACCES", {"bnd"}}}; }) == "seccomp: unknown system call 'bnd' on x86-64");
  CHECK(said([](auto& r) { r.refuse_with = {{"EBAD", {"bind"}}}; }) == "seccomp: unknown errno name 'EBAD'");
  CHECK(said([](auto& r) { r.allow_if = {{.call = "sokket", .values = {1}}}; }) ==
        "seccomp: unknown system call 'sokket' on x86-64");
}

TEST_CASE("the calls of the door are all notified, and no others") {
  for (const std::string call : {"execve", "execveat", "exit_group"})
    CHECK(said([&](auto& r) { std::erase(r.notify, call); }) ==
          "seccomp: notify: '" + call + "' is missing, the door is held by it");
  CHECK(said([](auto& r) { r.notify.push_back("write"); }) ==
        "seccomp: notify: the supervisor does not answer 'write'");
}

TEST_CASE("no call stands in two places") {
  const std::string twice = " already stands in another place of the rules";
  CHECK(said([](auto& r) { r.allow = {"read", "read"}; }) == "seccomp: allow: 'read'" + twice);
  CHECK(said([](auto& r) { r.allow = {"execve"}; }) == "seccomp: allow: 'execve'" + twice);
  CHECK(said([](auto& r) { r.notify.push_back("execve"); }) == "seccomp: notify: 'execve'" + twice);
  CHECK(said([](auto& r) { r.allow_if = {{.call = "read", .values = {1}}}; }) == "seccomp: allow_if: 'read'" + twice);
  CHECK(said([](auto& r) {
          r.allow_if = {{.call = "socket", .values = {1}}, {.call = "socket", .values = {2}}};
        }) == "seccomp: allow_if: 'socket'" + twice);
  CHECK(said([](auto& r) { r.refuse_with = {{"EACCES", {"read"}}}; }) == "seccomp: refuse_with EACCES: 'read'" + twice);
  CHECK(said([](auto& r) {
          r.refuse_with = {{"EACCES", {"bind"}}, {"ENOSYS", {"bind"}}};
        }) == "seccomp: refuse_with ENOSYS: 'bind'" + twice);
  // The errno for the other arguments of a conditional call stands once.
  CHECK(said([](auto& r) {
          r.allow_if = {{.call = "socket", .values = {1}}};
          r.refuse_with = {{"EACCES", {"socket"}}};
        }) == "accepted");
  CHECK(said([](auto& r) {
          r.allow_if = {{.call = "socket", .values = {1}}};
          r.refuse_with = {{"EACCES", {"socket"}}, {"ENOSYS", {"socket"}}};
        }) == "seccomp: refuse_with ENOSYS: 'socket'" + twice);
}

TEST_CASE("argument rules that mean nothing or cannot be compiled") {
  const auto with = [](ArgumentRule rule) { return said([&](auto& r) { r.allow_if = {rule}; }); };
  CHECK(with({.call = "socket", .index = 6, .values = {1}}) ==
        "seccomp: allow_if: 'socket': a call has arguments 0 to 5, not 6");
  CHECK(with({.call = "socket", .mask = 0, .values = {0}}) ==
        "seccomp: allow_if: 'socket': the mask is 0, so every argument would match");
  CHECK(with({.call = "socket", .values = {}}) == "seccomp: allow_if: 'socket': no value is given");
  CHECK(with({.call = "socket", .mask = 1, .values = {2}}) ==
        "seccomp: allow_if: 'socket': value 2 has bits outside the mask and can never match");
  CHECK(with({.call = "socket", .values = {1, 1}}) == "seccomp: allow_if: 'socket': value 1 stands twice");
  const std::string no_errno = " is allowed for several or masked values, its errno is the default";
  for (const ArgumentRule& rule : {ArgumentRule{.call = "socket", .values = {1, 2}},
                                   ArgumentRule{.call = "socket", .mask = 0xffff, .values = {1}}})
    CHECK(said([&](auto& r) {
            r.allow_if = {rule};
            r.refuse_with = {{"EACCES", {"socket"}}};
          }) == "seccomp: refuse_with EACCES: 'socket'" + no_errno);
}

TEST_CASE("a candidate can never load a filter of its own") {
  const std::string by_option =
      "seccomp: 'prctl' must be allowed by its option (arg 0, all 32 bits) and without PR_SET_SECCOMP (22)";
  CHECK(said([](auto& r) { r.allow = {"seccomp"}; }) ==
        "seccomp: 'seccomp' would let the candidate load a filter of its own");
  CHECK(said([](auto& r) { r.allow_if = {{.call = "seccomp", .values = {0}}}; }) ==
        "seccomp: 'seccomp' would let the candidate load a filter of its own");
  CHECK(said([](auto& r) { r.allow = {"prctl"}; }) == by_option);
  const auto with = [](ArgumentRule rule) { return said([&](auto& r) { r.allow_if = {rule}; }); };
  CHECK(with({.call = "prctl", .values = {15, 22}}) == by_option);
  CHECK(with({.call = "prctl", .values = {0x100000016}}) == by_option);  // the kernel looks at the lower half
  CHECK(with({.call = "prctl", .index = 1, .values = {15}}) == by_option);
  CHECK(with({.call = "prctl", .mask = 0xe9, .values = {0}}) == by_option);
  CHECK(with({.call = "prctl", .mask = 0xffffffff, .values = {15}}) == "accepted");
}

TEST_CASE("a candidate can never set its core limit") {
  const auto message_of = [](const std::string& call, const std::string& index) {
    return "seccomp: '" + call + "' must be allowed by its resource (arg " + index +
           ", all 32 bits) and without RLIMIT_CORE (4)";
  };
  CHECK(said([](auto& r) { r.allow = {"prlimit64"}; }) == message_of("prlimit64", "1"));
  CHECK(said([](auto& r) { r.allow = {"setrlimit"}; }) == message_of("setrlimit", "0"));
  const auto with = [](ArgumentRule rule) { return said([&](auto& r) { r.allow_if = {rule}; }); };
  const std::uint64_t half = 0xffffffff;
  CHECK(with({.call = "prlimit64", .index = 1, .mask = half, .values = {3, 4}}) == message_of("prlimit64", "1"));
  CHECK(with({.call = "prlimit64", .index = 1, .values = {0x100000004}}) == message_of("prlimit64", "1"));
  CHECK(with({.call = "prlimit64", .index = 0, .mask = half, .values = {3}}) == message_of("prlimit64", "1"));
  CHECK(with({.call = "setrlimit", .index = 0, .mask = half, .values = {4}}) == message_of("setrlimit", "0"));
  CHECK(with({.call = "prlimit64", .index = 1, .mask = half, .values = {3, 7}}) == "accepted");
  CHECK(with({.call = "setrlimit", .index = 0, .mask = half, .values = {3, 7}}) == "accepted");
}

TEST_CASE("the document for the delegate") {
  SeccompRules rules = small_rules();
  rules.allow = {"read", "write"};
  rules.allow_if = {{.call = "socket", .values = {1}}, {.call = "getpriority", .mask = 0xffff, .values = {0}}};
  rules.refuse_with = {{"EPERM", {"getsid"}}, {"EACCES", {"socket", "shmget", "shmat"}}, {"ENOSYS", {"bpf"}}};
  const auto document = oci_seccomp_json(rules, "/run/listener");
  const auto head = nlohmann::json::parse(R"([
      {"names": ["execve", "execveat", "exit_group"], "action": "SCMP_ACT_NOTIFY"},
      {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
      {"names": ["socket"], "action": "SCMP_ACT_ALLOW",
       "args": [{"index": 0, "value": 1, "valueTwo": 0, "op": "SCMP_CMP_EQ"}]},
      {"names": ["getpriority"], "action": "SCMP_ACT_ALLOW",
       "args": [{"index": 0, "value": 65535, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]},
      {"names": ["socket"], "action": "SCMP_ACT_NOTIFY",
       "args": [{"index": 0, "value": 1, "valueTwo": 0, "op": "SCMP_CMP_NE"}]}])");
  const auto tail =
      nlohmann::json::parse(R"([{"names": ["shmget", "shmat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}])");
  const auto& calls = document["syscalls"];
  CHECK(nlohmann::json(std::vector(calls.begin(), calls.begin() + 5)) == head);
  CHECK(nlohmann::json{calls.back()} == tail);
  CHECK(document["defaultAction"] == "SCMP_ACT_ERRNO");
  CHECK(document["defaultErrnoRet"] == 1);
  CHECK(document["architectures"] == nlohmann::json{"SCMP_ARCH_X86_64"});
  CHECK(document["listenerPath"] == "/run/listener");
}

TEST_CASE("without a listener the door stands open and nothing else changes") {
  nlohmann::json with = oci_seccomp_json(captured_rules(), "/l");
  const nlohmann::json without = oci_seccomp_json(captured_rules(), "");
  CHECK(with["syscalls"][0]["action"] == "SCMP_ACT_NOTIFY");
  CHECK(!without.contains("listenerPath"));
  for (const auto& rule : without["syscalls"]) CHECK(rule["action"] != "SCMP_ACT_NOTIFY");
  // Nobody counts, so what would be counted is refused: by the default, or by a rule with an errno of its own.
  nlohmann::json expected = nlohmann::json::array();
  for (auto rule : with["syscalls"]) {
    const bool counted = rule["action"] == "SCMP_ACT_NOTIFY" && rule["names"][0] != "execve";
    const bool network = rule["names"][0] == "socket" || rule["names"][0] == "socketpair";
    if (counted && !network) continue;
    if (counted) rule["action"] = "SCMP_ACT_ERRNO", rule["errnoRet"] = 13;
    if (rule["action"] == "SCMP_ACT_NOTIFY") rule["action"] = "SCMP_ACT_ALLOW";
    expected.push_back(rule);
  }
  CHECK(without["syscalls"] == expected);
  with.erase("listenerPath");
  with["syscalls"] = without["syscalls"];
  CHECK(with == without);
}

TEST_CASE("rules that were never checked become a document that lets nothing run") {
  SeccompRules rules = small_rules();
  rules.default_errno = "EPRM";
  CHECK(oci_seccomp_json(rules, "/l") == nlohmann::json{{"defaultAction", "SCMP_ACT_KILL_PROCESS"}});
  rules = small_rules();
  rules.refuse_with = {{"EBAD", {"bind"}}};
  CHECK(oci_seccomp_json(rules, "/l") == nlohmann::json{{"defaultAction", "SCMP_ACT_KILL_PROCESS"}});
  CHECK(message(compile_seccomp(rules)) == "seccomp: unknown errno name 'EBAD'");
}

std::uint32_t answer(const BpfProgram& program, const std::string& call, std::vector<std::uint64_t> args = {}) {
  SeccompData data{.nr = *call_number(call), .arch = kArchX8664};
  std::copy(args.begin(), args.end(), data.args.begin());
  const auto result = evaluate(program, data);
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  return *result;
}

TEST_CASE("the compiled program does what the rules say") {
  const auto compiled = compile_seccomp(captured_rules());
  REQUIRE_MESSAGE(compiled.has_value(), compiled.error().message);
  const BpfProgram& program = *compiled;
  for (const std::string& call : captured_rules().allow) CHECK(answer(program, call) == kAllow);
  for (const std::string& call : captured_rules().notify) CHECK(answer(program, call) == kNotify);
  for (const std::string call : {"getsid", "sched_setaffinity", "futex_wait", "shmget"})
    CHECK(answer(program, call) == (kErrno | 1));
  // Refused by the supervisor, who counts them.
  for (const std::string call :
       {"ptrace", "mount", "bpf", "unshare", "setns", "keyctl", "io_uring_setup", "seccomp", "connect"})
    CHECK(answer(program, call) == kNotify);
  CHECK(answer(program, "clone3") == (kErrno | 38));
  CHECK(answer(program, "socket", {1}) == kAllow);
  for (const std::uint64_t family : {0ULL, 2ULL, 10ULL, 16ULL, 17ULL, 38ULL, 40ULL, 0x100000001ULL, ~0ULL})
    CHECK(answer(program, "socket", {family}) == kNotify);
  CHECK(answer(program, "clone", {0x1200011}) == kAllow);
  for (const std::uint64_t flag :
       {0x80ULL, 0x20000ULL, 0x2000000ULL, 0x4000000ULL, 0x8000000ULL, 0x10000000ULL, 0x20000000ULL, 0x40000000ULL})
    CHECK(answer(program, "clone", {0x1200011 | flag}) == kNotify);
  CHECK(answer(program, "ioctl", {3, 0x5401}) == kAllow);
  CHECK(answer(program, "ioctl", {3, 0x500005401}) == kAllow);  // the kernel cuts it to 0x5401, and so does the mask
  CHECK(answer(program, "ioctl", {3, 0x5414}) == (kErrno | 1));
  CHECK(answer(program, "ioctl", {3, 0x5412}) == kNotify);
  CHECK(answer(program, "ioctl", {3, 0x100005412}) == kNotify);
  CHECK(answer(program, "prctl", {15}) == kAllow);
  CHECK(answer(program, "prctl", {38}) == (kErrno | 1));
  CHECK(answer(program, "prctl", {22}) == kNotify);
  CHECK(answer(program, "prctl", {0x100000016}) == kNotify);
}

TEST_CASE("other architectures are killed") {
  const auto compiled = compile_seccomp(captured_rules());
  REQUIRE(compiled.has_value());
  CHECK(evaluate(*compiled, {.nr = 3, .arch = kArchI386}) == kKill);
  CHECK(evaluate(*compiled, {.nr = kX32Bit, .arch = kArchX8664}) == kKill);
  CHECK(evaluate(*compiled, {.nr = 0, .arch = 0xc00000b7}) == kKill);
}

}  // namespace
}  // namespace benchsand
