// What real attached filters do, and that no change of one goes unnoticed.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "oci/bpf_eval.h"
#include "oci/ledger.h"
#include "oci/profile.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/seccomp_rules.h"

namespace benchsand {
namespace {

constexpr const char* kCaptured[] = {"seccomp/crun-1.8.1.txt", "seccomp/runc-1.1.5.txt"};
constexpr std::uint32_t kAllow = 0x7fff0000, kErrno = 0x00050000, kNotify = 0x7fc00000;

BpfProgram captured(const std::string& name) {
  std::istringstream text(fixture(name));
  BpfProgram program;
  std::uint32_t code = 0, jt = 0, jf = 0, k = 0;
  while (text >> std::hex >> code >> std::dec >> jt >> jf >> std::hex >> k)
    program.push_back(
        {static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(jt), static_cast<std::uint8_t>(jf), k});
  REQUIRE(program.size() > 80);
  return program;
}

BpfProgram compiled(const SeccompRules& rules) {
  const auto program = compile_seccomp(rules);
  REQUIRE_MESSAGE(program.has_value(), program.error().message);
  return *program;
}

FilterSummary summary(const BpfProgram& program) {
  const auto result = summarize_filter(program);
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  return *result;
}

std::string difference(const BpfProgram& a, const BpfProgram& b, const SeccompRules& rules) {
  const auto result = filter_difference(a, b, rules);
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  return *result;
}

TEST_CASE("the filters that crun and runc attached do what was compiled") {
  const BpfProgram meant = compiled(captured_rules());
  for (const std::string name : kCaptured) {
    CAPTURE(name);
    const BpfProgram attached = captured(name);
    CHECK(difference(attached, meant, captured_rules()).empty());
    CHECK(difference(meant, attached, captured_rules()).empty());
    FilterSummary seen = summary(attached);
    CHECK(seen.sha256 != "");
    seen.sha256 = summary(meant).sha256;
    CHECK(seen == summary(meant));
  }
  CHECK(captured(kCaptured[0]) != captured(kCaptured[1]));  // runc puts its ENOSYS stub before
}

TEST_CASE("summary of the captured rules") {
  const FilterSummary seen = summary(captured(kCaptured[0]));
  CHECK(seen.calls == 381);
  CHECK(seen.refused == 381 - 46);  // 38 allowed, 5 by argument, 3 notified
  CHECK(seen.conditional == 5);
  CHECK(seen.notified == 3);
  CHECK(seen.counted == 83);  // beside the refusals in the filter
  CHECK(seen.unlisted_open == 0);
  CHECK(seen.i386_killed);
  CHECK(seen.x32_killed);
  CHECK(seen.open_families.empty());
  CHECK(seen.sha256.size() == 64);
}

TEST_CASE("programs that are open show it") {
  const FilterSummary all = summary({{0x06, 0, 0, kAllow}});
  CHECK(all.refused == 0);
  CHECK(all.calls == 381);
  CHECK(all.conditional == 0);
  CHECK(all.unlisted_open == 222);
  CHECK(!all.i386_killed);
  CHECK(!all.x32_killed);
  CHECK(all.open_families.size() == 63);
  CHECK(all.open_families[0] == "0");
  CHECK(all.open_families[1] == "2");  // 1 is AF_UNIX

  for (const std::uint32_t open : {0x7ffc0000U, 0x7ff00000U})  // logged, traced
    CHECK(summary({{0x06, 0, 0, open}}).refused == 0);
  // Everything asked of the supervisor: it lets three calls run, and refuses and counts the others.
  const FilterSummary asked = summary({{0x06, 0, 0, 0x7fc00000}});
  CHECK(asked.notified == 3);
  CHECK(asked.counted == 378);
  CHECK(asked.refused == 378);
  CHECK(asked.unlisted_open == 0);
  CHECK(asked.open_families.empty());
  for (const std::uint32_t closed : {0U, 0x80000000U, 0x00030000U, kErrno, kErrno | 38U, 0x12340000U})
    CHECK(summary({{0x06, 0, 0, closed}}).refused == 381);
}

TEST_CASE("a call that is open for one odd argument is not counted as refused") {
  // Allows socket, and call 500, for one value of an argument that no rule speaks of.
  const BpfProgram program = {{0x20, 0, 0, 0},      {0x15, 1, 0, 41},     {0x15, 0, 3, 500},       {0x20, 0, 0, 36},
                              {0x15, 0, 1, 0x1234}, {0x06, 0, 0, kAllow}, {0x06, 0, 0, kErrno | 1}};
  const FilterSummary seen = summary(program);
  CHECK(seen.refused == 380);
  CHECK(seen.conditional == 1);
  CHECK(seen.unlisted_open == 1);
  CHECK(seen.open_families.size() == 63);
  CHECK(difference(program, {{0x06, 0, 0, kErrno | 1}}, captured_rules()) ==
        "socket with argument 2 (high half) & 0xffffffff = 0x1234: allow, expected EPERM");
}

TEST_CASE("every changed return value is noticed, or belongs to a number that nobody named") {
  for (const std::string name : kCaptured) {
    const BpfProgram good = captured(name);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      if (good[i].code != 0x06) continue;
      BpfProgram bad = good;
      bad[i].k = good[i].k == kAllow ? kErrno | 1 : kAllow;
      CAPTURE(i);
      CHECK(difference(bad, good, captured_rules()) != "");
      changed += 1;
    }
    CHECK(changed >= 5);
  }
}

TEST_CASE("every compared constant counts") {
  const BpfProgram good = captured(kCaptured[0]);
  for (std::size_t i = 0; i < good.size(); ++i) {
    if ((good[i].code & 7) != 5 || good[i].code == 0x05) continue;
    // -1 is no call; libseccomp lets it through to the default answer, which is a refusal too.
    if (good[i].k == 0xffffffff) continue;
    BpfProgram bad = good;
    bad[i].k ^= 1;
    CAPTURE(i);
    CAPTURE(bad[i].k);
    CHECK(difference(bad, good, captured_rules()) != "");
  }
}

// The rules changed in one place, against the rules as they were.
std::string after(void (*change)(SeccompRules&)) {
  SeccompRules rules = captured_rules();
  change(rules);
  return difference(compiled(rules), compiled(captured_rules()), captured_rules());
}

TEST_CASE("differences are said in words") {
  CHECK(after([](SeccompRules& r) { r.allow.push_back("ptrace"); }) == "ptrace: allow, expected notify");
  CHECK(after([](SeccompRules& r) { std::erase(r.allow, "read"); }) == "read: EPERM, expected allow");
  // Both families differ; which one is met first is libseccomp's choice.
  const std::string family = after([](SeccompRules& r) { r.allow_if[1].values = {2}; });
  const std::string low = "socket with argument 0 (low half) & 0xffffffff = ";
  const std::string high = ", argument 0 (high half) & 0xffffffff = 0x0: ";
  CHECK((family == low + "0x1" + high + "notify, expected allow" ||
         family == low + "0x2" + high + "allow, expected notify"));
  CHECK(after([](SeccompRules& r) { r.allow_if[0].mask = 0x7e020000; }) ==
        "clone with argument 0 (low half) & 0x80 = 0x80: EPERM, expected notify");
  CHECK(after([](SeccompRules& r) { r.allow_if[2].values.push_back(0x5412); }) ==
        "ioctl with argument 1 (low half) & 0xffffffff = 0x5412: allow, expected notify");
  CHECK(after([](SeccompRules& r) { r.refuse_with[1].first = "EACCES"; }) == "clone3: EACCES, expected ENOSYS");
  CHECK(after([](SeccompRules& r) { r.refuse_with.pop_back(); }) == "clone3: EPERM, expected ENOSYS");
  CHECK(after([](SeccompRules& r) { r.default_errno = "EACCES"; }) != "");
  const BpfProgram kill = {{0x06, 0, 0, 0}}, trap = {{0x06, 0, 0, 0x00030000}};
  CHECK(difference(kill, trap, captured_rules()) == "read: kill, expected trap");
}

TEST_CASE("only calls that the rules do not name may be refused with ENOSYS instead") {
  const BpfProgram eperm = {{0x06, 0, 0, kErrno | 1}};
  const auto enosys_for = [](std::uint32_t nr) -> BpfProgram {
    return {{0x20, 0, 0, 4},  {0x15, 0, 3, kArchX8664},  {0x20, 0, 0, 0},
            {0x15, 0, 1, nr}, {0x06, 0, 0, kErrno | 38}, {0x06, 0, 0, kErrno | 1}};
  };
  CHECK(difference(enosys_for(101), eperm, captured_rules()).empty());  // ptrace
  CHECK(difference(enosys_for(450), eperm, captured_rules()).empty());
  CHECK(difference(enosys_for(435), eperm, captured_rules()) == "clone3: ENOSYS, expected EPERM");
  CHECK(difference(enosys_for(0), eperm, captured_rules()) == "read: ENOSYS, expected EPERM");
}

TEST_CASE("a program that the kernel would not take is an error") {
  const auto result = filter_difference({}, {{0x06, 0, 0, 0}}, captured_rules());
  REQUIRE(!result.has_value());
  CHECK(result.error().message == "check the seccomp program: 1 to 4096 instructions are due, there are 0");
  REQUIRE(!summarize_filter({}).has_value());
}

std::string text_of(const std::string& path) {
  std::ifstream file(BENCHSAND_SOURCE_DIR "/" + path);
  REQUIRE_MESSAGE(file.good(), path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Profile profile(const std::string& name) {
  const auto parsed = parse_profile(text_of("profiles/" + name + ".yaml"), name + ".yaml");
  REQUIRE_MESSAGE(parsed.has_value(), parsed.error().message);
  return *parsed;
}

std::vector<std::string> shipped_profiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(BENCHSAND_SOURCE_DIR "/profiles"))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  REQUIRE(names.size() == 7);
  return names;
}

std::set<std::string> named_calls(const Profile& profile) {
  std::set<std::string> names(profile.seccomp.allow.begin(), profile.seccomp.allow.end());
  for (const ArgumentRule& rule : profile.seccomp.allow_if) names.insert(rule.call);
  names.insert(profile.seccomp.notify.begin(), profile.seccomp.notify.end());
  return names;
}

TEST_CASE("the profiles name and refuse as much as their README says") {
  const std::string readme = text_of("profiles/README.md");
  const std::set<std::string> strict = named_calls(profile("strict"));
  for (const std::string& name : shipped_profiles()) {
    const std::set<std::string> named = named_calls(profile(name));
    const auto beyond =
        std::count_if(named.begin(), named.end(), [&](const auto& call) { return !strict.contains(call); });
    const FilterSummary seen = summary(compiled(profile(name).seccomp));
    const std::string row = "| `" + name + "` | " + std::to_string(named.size()) + " | " + std::to_string(beyond) +
                            " | " + std::to_string(seen.refused) + " of " + std::to_string(seen.calls) + " |";
    CAPTURE(row);
    CHECK(readme.find(row) != std::string::npos);
    CHECK(beyond <= 72);
    CHECK(seen.refused >= (name == "strict" ? 285 : 220));
    CHECK(seen.notified == 3);
    CHECK(seen.unlisted_open == 0);
    CHECK(seen.i386_killed);
    CHECK(seen.x32_killed);
    CHECK(seen.open_families.empty());
  }
}

bool is_counted(const SeccompRules& rules, const std::string& call) {
  const auto ledger = ledger_rules(rules);
  REQUIRE(ledger.has_value());
  return std::any_of(ledger->begin(), ledger->end(), [&](const LedgerRule& rule) { return rule.call == call; });
}

TEST_CASE("no profile allows what would take a wall down") {
  for (const std::string& name : shipped_profiles()) {
    const SeccompRules rules = profile(name).seccomp;
    const BpfProgram program = compiled(rules);
    for (const std::string call : {"mount",
                                   "umount2",
                                   "move_mount",
                                   "open_tree",
                                   "fsopen",
                                   "pivot_root",
                                   "chroot",
                                   "unshare",
                                   "setns",
                                   "ptrace",
                                   "process_vm_readv",
                                   "process_vm_writev",
                                   "pidfd_getfd",
                                   "kcmp",
                                   "bpf",
                                   "perf_event_open",
                                   "io_uring_setup",
                                   "io_uring_enter",
                                   "userfaultfd",
                                   "keyctl",
                                   "add_key",
                                   "request_key",
                                   "seccomp",
                                   "clone3",
                                   "memfd_create",
                                   "memfd_secret",
                                   "personality",
                                   "mknod",
                                   "mknodat",
                                   "open_by_handle_at",
                                   "name_to_handle_at",
                                   "quotactl",
                                   "setuid",
                                   "setgid",
                                   "setgroups",
                                   "capset",
                                   "sethostname",
                                   "init_module",
                                   "kexec_load",
                                   "reboot",
                                   "swapon",
                                   "fanotify_init",
                                   "modify_ldt",
                                   "iopl",
                                   "ioperm",
                                   "shmget",
                                   "msgget",
                                   "semget",
                                   "mq_open",
                                   "vmsplice"}) {
      CAPTURE(name);
      CAPTURE(call);
      // A character device; under `build` a FIFO may be made.
      const auto seen = evaluate(program, {.nr = *call_number(call), .arch = kArchX8664, .args = {0, 0, 0020666}});
      const std::uint32_t answer = is_counted(rules, call) ? kNotify : kErrno | (call == "clone3" ? 38U : 1U);
      CHECK(seen == answer);
    }
  }
}

TEST_CASE("the profiles allow all that strict allows") {
  const std::set<std::string> strict = named_calls(profile("strict"));
  for (const std::string& name : shipped_profiles()) {
    CAPTURE(name);
    const std::set<std::string> named = named_calls(profile(name));
    CHECK(std::includes(named.begin(), named.end(), strict.begin(), strict.end()));
  }
}

TEST_CASE("build makes FIFOs and no other special files") {
  const BpfProgram program = compiled(profile("build").seccomp);
  const auto answer = [&](std::uint64_t mode) {
    return *evaluate(program, {.nr = *call_number("mknodat"), .arch = kArchX8664, .args = {0, 0, mode}});
  };
  CHECK(answer(0010644) == kAllow);
  for (const std::uint64_t type : {0020000, 0040000, 0060000, 0120000, 0140000}) CHECK(answer(type | 0644) == kNotify);
}

}  // namespace
}  // namespace benchsand
