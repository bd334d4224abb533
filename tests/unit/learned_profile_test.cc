#include "oci/learned_profile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "oci/bpf_eval.h"
#include "oci/verdict.h"
#include "sample.h"

using namespace benchsand;

namespace {

std::string base_text(const std::string& name) {
  std::ifstream file(std::string(BENCHSAND_SOURCE_DIR) + "/profiles/" + name + ".yaml", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Profile base(const std::string& name) {
  const auto profile = parse_profile(base_text(name), name);
  REQUIRE_MESSAGE(profile.has_value(), profile.message());
  return *profile;
}

class Calls : public LearnedCalls {
 public:
  Calls& made(const std::string& call, CallArguments arguments = {}) {
    saw(*call_number(call), arguments);
    return *this;
  }
};

std::string text_of(const LearnedCalls& calls, const std::string& on = "strict") {
  const auto text = learned_profile(calls, base(on), base_text(on), "learned-sample");
  REQUIRE_MESSAGE(text.has_value(), text.message());
  return *text;
}

Profile learned(const LearnedCalls& calls, const std::string& on = "strict") {
  const auto profile = parse_profile(text_of(calls, on), "learned");
  REQUIRE_MESSAGE(profile.has_value(), profile.message());
  return *profile;
}

bool allows(const Profile& profile, const std::string& call) {
  const auto& list = profile.seccomp.allow;
  return std::find(list.begin(), list.end(), call) != list.end();
}

const ArgumentRule* condition(const Profile& profile, const std::string& call) {
  for (const auto& rule : profile.seccomp.allow_if)
    if (rule.call == call) return &rule;
  return nullptr;
}

std::string errno_of(const Profile& profile, const std::string& call) {
  for (const auto& [name, calls] : profile.seccomp.refuse_with)
    if (std::find(calls.begin(), calls.end(), call) != calls.end()) return name;
  return errno_name(Ledger(profile.seccomp, {1, 1}).errno_for(*call_number(call)));
}

constexpr std::uint32_t kNotified = 0x7fc00000, kErrno = 0x00050000;

}  // namespace

TEST_CASE("what was called is allowed and counted, and what was not stays refused") {
  const Calls calls = Calls().made("flock").made("flock").made("sendfile").made("execve").made("exit_group");
  const Profile profile = learned(calls);
  CHECK(profile.name == "learned-sample");
  CHECK(allows(profile, "flock"));
  CHECK(allows(profile, "sendfile"));
  CHECK_FALSE(allows(profile, "mremap"));
  CHECK_FALSE(allows(profile, "chdir"));
  CHECK(profile.seccomp.notify == base("strict").seccomp.notify);
  const std::string text = text_of(calls);
  CHECK(text.find("- flock                  # 2 calls\n") != std::string::npos);
  CHECK(text.find("- sendfile               # 1 call\n") != std::string::npos);
  CHECK(text.find("5 calls, 4 different ones") != std::string::npos);
}

TEST_CASE("the bounds are those of the base") {
  const Profile profile = learned(Calls(), "python"), python = base("python");
  for (const auto& field : kLimitFields) {
    const std::string name(field.name);
    CHECK(profile.limits.at(name).standard == python.limits.at(name).standard);
    CHECK(profile.limits.at(name).maximum == python.limits.at(name).maximum);
  }
  CHECK(profile.stdio_total_bytes == python.stdio_total_bytes);
  CHECK(profile.collect == python.collect);
  CHECK(profile.uid == python.uid);
  CHECK(profile.filter_proof == python.filter_proof);
}

TEST_CASE("the delegates and the vDSO get what nobody sees them call") {
  const Profile profile = learned(Calls());
  for (const char* call :
       {"fstatfs", "getdents64", "futex", "wait4", "kill", "clock_gettime", "gettimeofday", "time"}) {
    CAPTURE(call);
    CHECK(allows(profile, call));
  }
  CHECK(text_of(Calls()).find("# not seen; vDSO") != std::string::npos);
}

TEST_CASE("where an argument decides, the values are learned and not the call") {
  const Profile profile = learned(Calls()
                                      .made("ioctl", {0, 0x5401})
                                      .made("ioctl", {0, 0xffffffff00005413})
                                      .made("fcntl", {0, 1030})
                                      .made("prctl", {15})
                                      .made("arch_prctl", {0x1002})
                                      .made("socket", {1}));
  for (const char* call : {"ioctl", "fcntl", "prctl", "arch_prctl", "socket", "clone"})
    CHECK_FALSE(allows(profile, call));
  REQUIRE(condition(profile, "ioctl"));
  CHECK(condition(profile, "ioctl")->values == std::vector<std::uint64_t>{0x5401, 0x5413});
  CHECK(condition(profile, "ioctl")->mask == 0xffffffff);
  CHECK(condition(profile, "fcntl")->values == std::vector<std::uint64_t>{1, 2, 3, 1030});
  CHECK(condition(profile, "prctl")->values == std::vector<std::uint64_t>{15});
  CHECK(condition(profile, "arch_prctl")->values == std::vector<std::uint64_t>{0x1002});
  CHECK(condition(profile, "socket")->values == std::vector<std::uint64_t>{1});
  CHECK(condition(profile, "clone")->mask == 0x7e020080);
  CHECK(condition(profile, "clone")->values == std::vector<std::uint64_t>{0});
}

TEST_CASE("what would take a wall down is never learned") {
  Calls calls;
  calls.made("socket", {2})
      .made("socketpair", {16})
      .made("prctl", {22})
      .made("prctl", {15})
      .made("clone", {0x10000000});
  for (const char* call : {"unshare", "mount", "seccomp", "ptrace", "bpf", "io_uring_setup", "clone3", "setns"})
    calls.made(call);
  const Profile profile = learned(calls);
  CHECK_FALSE(condition(profile, "socket"));
  CHECK_FALSE(condition(profile, "socketpair"));
  CHECK(condition(profile, "prctl")->values == std::vector<std::uint64_t>{15});
  for (const char* call :
       {"unshare", "mount", "seccomp", "ptrace", "bpf", "io_uring_setup", "clone3", "setns", "socket"})
    CHECK_FALSE(allows(profile, call));
  CHECK(errno_of(profile, "clone3") == "ENOSYS");
  CHECK(errno_of(profile, "socket") == "EACCES");
}

TEST_CASE("an errno of the base holds for what is still refused") {
  const Profile profile = learned(Calls().made("connect").made("socket", {1}));
  CHECK(allows(profile, "connect"));
  CHECK(errno_of(profile, "connect") == "EPERM");  // allowed, so it stands nowhere else
  CHECK(errno_of(profile, "bind") == "EACCES");
  CHECK(errno_of(profile, "socket") == "EACCES");  // for the other families
}

TEST_CASE("every call there is can be learned, and makes a profile that parses") {
  LearnedCalls calls;
  for (int number = 0; number < 600; ++number) calls.saw(number, {1, 1, 1, 1, 1, 1});
  for (const char* name : {"strict", "python"}) {
    const Profile profile = learned(calls, name);
    CHECK(profile.seccomp.allow.size() > 200);
    CHECK(compile_seccomp(profile.seccomp).has_value());
  }
  CHECK(text_of(calls).find("number 599, 1 call: no name") != std::string::npos);
}

TEST_CASE("a base that does not have its sections on lines of their own is refused") {
  const auto text = learned_profile(Calls(), base("strict"), "{benchsand_profile: 1}\n", "learned-sample");
  REQUIRE_FALSE(text.has_value());
  CHECK(text.error().kind == Error::Kind::usage);
  CHECK(text.message() ==
        "write the learned profile: profile 'strict' has no `name:` or no `seccomp:` at the beginning of a line");
}

TEST_CASE("while learning, everything is notified but what no profile grants") {
  const SeccompRules rules = learning_rules(base("strict").seccomp);
  const auto program = compile_seccomp(rules);
  REQUIRE_MESSAGE(program.has_value(), program.message());
  const auto answer = [&](const char* call, std::uint64_t first = 0) {
    return *evaluate(*program, {.nr = *call_number(call), .arch = kArchX8664, .args = {first}});
  };
  for (const char* call : {"read", "execve", "exit_group", "memfd_create", "connect", "getxattr"}) {
    CAPTURE(call);
    CHECK(answer(call) == kNotified);
  }
  CHECK(answer("socket", 1) == kNotified);
  CHECK(answer("socket", 2) == (kErrno | 13));
  CHECK(answer("clone3") == (kErrno | 38));
  CHECK(answer("unshare") == (kErrno | 1));
  CHECK(answer("seccomp") == (kErrno | 1));
  const auto summary = summarize_filter(*program);
  REQUIRE(summary.has_value());
  CHECK(summary->i386_killed);
  CHECK(summary->x32_killed);
}

TEST_CASE("only rules that learn let any call run") {
  const SeccompRules strict = base("strict").seccomp;
  const int connect = *call_number("connect");
  Ledger judging(strict, {1, 1}), learning(learning_rules(strict), {1, 1});
  CHECK_FALSE(judging.lets_run(connect));
  CHECK(judging.lets_run(*call_number("execve")));
  CHECK(learning.lets_run(connect));
  for (int i = 0; i < 10; ++i) CHECK_FALSE(learning.notified(0));
  CHECK_FALSE(judging.notified(0));
  CHECK(judging.notified(0));
}

TEST_CASE("a run that learns is never scored") {
  Policy policy = sample::policy();
  policy.seccomp = learning_rules(policy.seccomp);
  for (const auto layout : {CgroupLayout::hybrid, CgroupLayout::v2}) {
    const auto rules = wall_rules(policy, sample::host(layout));
    const End end = {Cause::exited, 0, {}, ""};
    Evidence evidence = sample::evidence(rules);
    const Value answers = std::string("every call let run");
    evidence.replace("syscalls.answers", {answers, "benchsand learn"});
    CHECK(broken_rules(rules, evidence, true).empty());  // it may start
    Verdict verdict = judge(rules, evidence, end, std::nullopt);
    CHECK_FALSE(verdict.scored);
    REQUIRE(verdict.failures.size() == 1);
    CHECK(verdict.failures[0].wall == "syscalls");
    evidence.remove("syscalls.answers");
    CHECK_FALSE(judge(rules, evidence, end, std::nullopt).scored);
  }
}
