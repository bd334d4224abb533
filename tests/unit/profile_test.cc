#include "oci/profile.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace benchsand;

namespace {

// A complete profile; each case below changes one place of it.
const std::string kGood = R"(benchsand_profile: 1
name: house
limits:
  cpu_time: {default: 2s, max: 10m}
  wall_time: {default: 10s, max: 1h}
  memory: {default: 256MiB, max: 4GiB}
  processes: {default: 32, max: 1024}
  disk: {default: 64MiB, max: 1GiB}
  files: {default: 1024, max: 65536}
  stdout: {default: 1MiB, max: 64MiB}
  stderr: {default: 2MiB, max: 64MiB}
  open_files: {default: 256, max: 4096}
  cpus: {default: 0.5, max: 64}
stdio_total: 4GiB
memory_headroom: 32MiB
collect: {files: 1024, bytes: 64MiB, depth: 16}
identity: {uid: 65534, gid: 65533}
filter_proof: dump
refusals: {total: 100000, per_second: 20000}
seccomp:
  default: EPERM
  notify: [execve, execveat, exit_group]
  allow: [read, write]
  allow_if:
    - {call: socket, arg: 0, is: [1]}
    - {call: clone, arg: 0, mask: 0x7e020080, is: [0]}
  refuse_with:
    EACCES: [connect, bind]
    ENOSYS: [clone3]
timeline: 250ms
rootfs_mount: overlay
egress_counters: [sockets, connects, packets]
user_namespace: own
exec: allow
without_runtime: refuse
)";

std::string with(const std::string& from, const std::string& to) {
  const std::size_t at = kGood.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return std::string(kGood).replace(at, from.size(), to);
}

// The first line of the message, without the file name.
std::string refusal(const std::string& text) {
  const auto profile = parse_profile(text, "p.yaml");
  REQUIRE_FALSE(profile.has_value());
  CHECK(profile.error().kind == Error::Kind::usage);
  REQUIRE(profile.message().starts_with("p.yaml:"));
  return profile.message().substr(7, profile.message().find('\n') - 7);
}

std::string line_of(const std::string& name) {
  const std::size_t at = kGood.find("  " + name + ": {");
  REQUIRE(at != std::string::npos);
  return kGood.substr(at, kGood.find('\n', at) + 1 - at);
}

}  // namespace

TEST_CASE("a complete profile is read, every field") {
  const auto profile = parse_profile(kGood, "p.yaml");
  if (!profile) FAIL(profile.message());
  CHECK(profile->name == "house");
  CHECK(profile->limits.size() == kLimitFields.size());
  CHECK(profile->limits.at("cpu_time").standard == 2'000'000);
  CHECK(profile->limits.at("cpu_time").maximum == 600'000'000);
  CHECK(profile->limits.at("stderr").standard == 2U << 20U);
  CHECK(profile->limits.at("cpus").standard == 500);
  CHECK(profile->stdio_total_bytes == 4'294'967'296);
  CHECK(profile->memory_headroom_bytes == 32U << 20U);
  CHECK(profile->collect == CollectCaps{.files = 1024, .bytes = 64U << 20U, .depth = 16});
  CHECK(profile->uid == 65534);
  CHECK(profile->gid == 65533);
  CHECK(profile->filter_proof == FilterProof::dump);
  CHECK(profile->timeline_us == 250'000);
  CHECK(profile->refusals == RefusalCaps{.total = 100000, .per_second = 20000});
  CHECK(profile->rootfs_mount == RootfsMount::overlay);
  CHECK(names_of(profile->egress_counters) == "sockets connects packets");
  CHECK(profile->user_namespace == UserNamespace::own);
  const SeccompRules& rules = profile->seccomp;
  CHECK(rules.default_errno == "EPERM");
  CHECK(rules.notify == std::vector<std::string>{"execve", "execveat", "exit_group"});
  CHECK(rules.allow == std::vector<std::string>{"read", "write"});
  REQUIRE(rules.allow_if.size() == 2);
  CHECK(rules.allow_if[0] == ArgumentRule{.call = "socket", .index = 0, .values = {1}});
  CHECK(rules.allow_if[1] == ArgumentRule{.call = "clone", .index = 0, .mask = 0x7e020080, .values = {0}});
  CHECK(rules.refuse_with == std::vector<std::pair<std::string, std::vector<std::string>>>{
                                 {"EACCES", {"connect", "bind"}}, {"ENOSYS", {"clone3"}}});
}

TEST_CASE("rootfs_mount: bind and user_namespace: host are read") {
  auto profile = parse_profile(with("rootfs_mount: overlay", "rootfs_mount: bind"), "p.yaml");
  REQUIRE(profile.has_value());
  CHECK(profile->rootfs_mount == RootfsMount::bind);
  profile = parse_profile(with("user_namespace: own", "user_namespace: host"), "p.yaml");
  REQUIRE(profile.has_value());
  CHECK(profile->user_namespace == UserNamespace::host);
}

TEST_CASE("exec is allow or deny, and nothing else") {
  CHECK(parse_profile(kGood, "p.yaml")->exec == ExecRule::allow);
  CHECK(parse_profile(with("exec: allow", "exec: deny"), "p.yaml")->exec == ExecRule::deny);
  const std::string said = refusal(with("exec: allow", "exec: never"));
  CHECK(said.substr(said.find(": ") + 2) == "error: exec: \"never\" is neither \"allow\" nor \"deny\"");
}

TEST_CASE("filter_proof: compiled is read") {
  const auto profile = parse_profile(with("filter_proof: dump", "filter_proof: compiled"), "p.yaml");
  REQUIRE(profile.has_value());
  CHECK(profile->filter_proof == FilterProof::compiled);
}

TEST_CASE("the timeline is none, or a time within bounds") {
  for (const auto& [text, us] : {std::pair<std::string, std::uint64_t>{"10ms", 10'000}, {"10s", 10'000'000}}) {
    const auto profile = parse_profile(with("250ms", text), "p.yaml");
    REQUIRE(profile.has_value());
    CHECK(profile->timeline_us == us);
  }
  const auto none = parse_profile(with("250ms", "none"), "p.yaml");
  REQUIRE(none.has_value());
  CHECK_FALSE(none->timeline_us);
  const auto message = [](const std::string& text) {
    const std::string said = refusal(with("250ms", text));
    return said.substr(said.find(": ") + 2);  // without the place
  };
  for (const std::string text : {"0", "-1", "9999us", "10001ms", ".inf"})
    CHECK(message(text) == "error: timeline: \"" + text + "\" is neither \"none\" nor a time from 10ms to 10s");
  const std::string no_time = "is not a time: a number with us, ms, s, m or h, or plain seconds";
  CHECK(message("never") == "error: timeline: \"never\" " + no_time);
  CHECK(message("'none'") == "error: timeline: \"none\" " + no_time);
  CHECK(refusal(with("timeline: 250ms\n", "")) == "1:1: error: key \"timeline\" is missing");
}

TEST_CASE("egress counters: any part of them, in any order, none too") {
  const auto read = [](const std::string& list) {
    const auto profile = parse_profile(with("[sockets, connects, packets]", list), "p.yaml");
    return profile ? names_of(profile->egress_counters) : profile.message();
  };
  CHECK(read("[packets, sockets]") == "sockets packets");
  CHECK(read("[connects]") == "connects");
  CHECK(read("[]") == "none");
}

TEST_CASE("a cpuset may be there, and is kept in the kernel's own form") {
  CHECK(parse_profile(kGood, "p.yaml")->cpuset == "");
  const auto set = [](const std::string& text) {
    return parse_profile(with("seccomp:\n", "cpuset: " + text + "\nseccomp:\n"), "p.yaml");
  };
  for (const auto& [text, form] : {std::pair{"0-1", "0-1"}, std::pair{"\"3,0,1\"", "0-1,3"}, std::pair{"2", "2"}}) {
    CAPTURE(text);
    const auto profile = set(text);
    REQUIRE(profile);
    CHECK(profile->cpuset == form);
  }
  for (const std::string text : {"all", "1-0", "''", "0x1"}) {
    CAPTURE(text);
    const auto profile = set(text);
    REQUIRE_FALSE(profile);
    const std::string value = text == "''" ? "" : text;
    CHECK(profile.message().find(": error: cpuset: \"" + value +
                                 "\" is not a list of processors, for example \"0-3\" or \"0,2\"") !=
          std::string::npos);
  }
  CHECK(set("[0, 1]").message().find(": error: cpuset: ") != std::string::npos);
}

TEST_CASE("every limit must be there, whole and greater than zero") {
  for (const LimitField& field : kLimitFields) {
    const std::string name(field.name);
    CAPTURE(name);
    CHECK(refusal(with(line_of(name), "")) == "4:3: error: limits: key \"" + name + "\" is missing");
    const auto changed = [&](const std::string& body) {
      return refusal(with(line_of(name), "  " + name + ": " + body + "\n"));
    };
    CHECK(changed("{default: 1}").find(": error: limits." + name + ": key \"max\" is missing") != std::string::npos);
    CHECK(changed("{max: 1}").find(": error: limits." + name + ": key \"default\" is missing") != std::string::npos);
    CHECK(changed("5").find(": error: limits." + name + ": a mapping is due here, not text") != std::string::npos);
    for (const std::string bound : {"0", "-1", ".nan", ".inf"}) {
      CHECK(changed("{default: 1, max: " + bound + "}")
                .find(": error: limits." + name + ".max: \"" + bound + "\" is not a bound greater than zero") !=
            std::string::npos);
      CHECK(changed("{default: " + bound + ", max: 1}")
                .find(": error: limits." + name + ".default: \"" + bound + "\" is not a bound greater than zero") !=
            std::string::npos);
    }
    CHECK(changed("{default: 3, max: 2}").find(": error: limits." + name + ": the default ") != std::string::npos);
  }
}

TEST_CASE("every key of the top must be there") {
  for (const std::string key :
       {"name", "limits", "stdio_total", "memory_headroom", "collect", "identity", "filter_proof", "refusals",
        "rootfs_mount", "seccomp", "egress_counters", "user_namespace", "exec"}) {
    CAPTURE(key);
    const auto profile = parse_profile(with("\n" + key + ":", "\nzz" + key + ":"), "p.yaml");
    REQUIRE_FALSE(profile.has_value());
    CHECK(profile.message().find("p.yaml:1:1: error: key \"" + key + "\" is missing\n") != std::string::npos);
    CHECK(profile.message().find(":1: error: unknown key \"zz" + key + "\"") != std::string::npos);
  }
}

TEST_CASE("each change of a good profile is refused with its own message") {
  struct Case {
    std::string from, to, message;
  };
  const std::string not_integer = " is not an integer: decimal without leading zeros or 0x, below 2^64";
  const std::vector<Case> cases{
      {"benchsand_profile: 1", "benchsand_profile: 2",
       "1:20: error: benchsand_profile: this version of benchsand reads format 1 only"},
      {"benchsand_profile: 1", "benchsand: 1",
       "1:1: error: the first key must be \"benchsand_profile\", the version of the format: \"benchsand_profile: 1\""},
      {"name: house", "name: a/b",
       "2:7: error: name: \"a/b\" is not a name: 1 to 64 of A-Z a-z 0-9 . _ -, starting with a letter or digit"},
      {"cpus: {", "gpus: {default: 1, max: 1}\n  cpus: {",
       "13:3: error: limits: unknown key \"gpus\"; did you mean \"cpus\"?"},
      {"{default: 32,", "{standard: 1, default: 32,", "7:15: error: limits.processes: unknown key \"standard\""},
      {"256MiB, max: 4GiB", "95MiB, max: 4GiB",
       "4:3: error: limits.memory.default: 95MiB does not hold limits.disk.default 64MiB and memory_headroom 32MiB"},
      {"default: 10s, max: 1h", "default: 2h, max: 1h",
       "5:14: error: limits.wall_time: the default 2h is over the max 1h"},
      {"stdio_total: 4GiB", "stdio_total: 0", "14:14: error: stdio_total: \"0\" is not a bound greater than zero"},
      {"memory_headroom: 32MiB", "memory_headroom: none",
       "15:18: error: memory_headroom: \"none\" is not a size: a number with B, KiB, MiB, GiB, KB, MB or GB, or plain "
       "bytes"},
      {"depth: 16}", "depth: 0}", "16:45: error: collect.depth: \"0\" is not a bound greater than zero"},
      {"{total: 100000, ", "{total: 0, ", "19:19: error: refusals.total: \"0\" is not a bound greater than zero"},
      {", per_second: 20000}", "}", "19:11: error: refusals: key \"per_second\" is missing"},
      {", depth: 16}", "}", "16:10: error: collect: key \"depth\" is missing"},
      {"uid: 65534", "uid: 0", "17:17: error: identity.uid: \"0\" is not between 1 and 4294967294"},
      {"gid: 65533", "gid: 4294967295", "17:29: error: identity.gid: \"4294967295\" is not between 1 and 4294967294"},
      {"gid: 65533", "gid: 0xFFFFFFFF", "17:29: error: identity.gid: \"0xFFFFFFFF\" is not between 1 and 4294967294"},
      {"uid: 65534", "uid: 4294967297", "17:17: error: identity.uid: \"4294967297\" is not between 1 and 4294967294"},
      {"uid: 65534", "uid: nobody", "17:17: error: identity.uid: \"nobody\"" + not_integer},
      {"uid: 65534", "uid: -1", "17:17: error: identity.uid: \"-1\"" + not_integer},
      {"uid: 65534", "uid: 010", "17:17: error: identity.uid: \"010\"" + not_integer},
      {"user_namespace: own", "user_namespace: mine",
       "33:17: error: user_namespace: \"mine\" is neither \"own\" nor \"host\""},
      {"rootfs_mount: overlay", "rootfs_mount: fuse",
       "31:15: error: rootfs_mount: \"fuse\" is neither \"overlay\" nor \"bind\""},
      {"filter_proof: dump", "filter_proof: none",
       "18:15: error: filter_proof: \"none\" is neither \"dump\" nor \"compiled\""},
      {"[sockets, connects, packets]", "sockets", "32:18: error: egress_counters: a list is due here, not text"},
      {"connects, packets]", "conects]",
       "32:28: error: egress_counters: \"conects\" is none of \"sockets\", \"connects\" and \"packets\""},
      {"connects, packets]", "sockets]", "32:28: error: egress_counters: \"sockets\" stands twice"},
      {"  default: EPERM\n", "", "21:3: error: seccomp: key \"default\" is missing"},
      {"  notify: [execve, execveat, exit_group]\n", "", "21:3: error: seccomp: key \"notify\" is missing"},
      {"  allow: [read, write]\n", "", "21:3: error: seccomp: key \"allow\" is missing"},
      {"allow: [read, write]", "allow: read", "23:10: error: seccomp.allow: a list is due here, not text"},
      {"allow: [read, write]", "alow: [read, write]", "21:3: error: seccomp: key \"allow\" is missing"},
      {"arg: 0, is: [1]", "arg: 6, is: [1]", "25:27: error: seccomp.allow_if[0].arg: a call has arguments 0 to 5"},
      {"arg: 0, is: [1]", "arg: 0, is: 1", "25:34: error: seccomp.allow_if[0].is: a list is due here, not text"},
      {"arg: 0, is: [1]", "arg: 0, is: []", "25:34: error: seccomp.allow_if[0].is: no value is listed"},
      {"arg: 0, is: [1]", "arg: 0, is: [AF_UNIX]", "25:35: error: seccomp.allow_if[0].is: \"AF_UNIX\"" + not_integer},
      {"arg: 0, is: [1]", "arg: 0, less: 3, is: [1]", "25:30: error: seccomp.allow_if[0]: unknown key \"less\""},
      {"arg: 0, is: [1]", "is: [1]", "25:7: error: seccomp.allow_if[0]: key \"arg\" is missing"},
      {"0x7e020080", "0x17e02008000000000",
       "26:35: error: seccomp.allow_if[1].mask: \"0x17e02008000000000\"" + not_integer},
      {"0x7e020080", "0x", "26:35: error: seccomp.allow_if[1].mask: \"0x\"" + not_integer},
      {"EACCES: [connect, bind]", "EACCES: connect",
       "28:13: error: seccomp.refuse_with[\"EACCES\"]: a list is due here, not text"},
      {"{uid: 65534", "{uid: 65534, uid: 65534", "17:24: error: duplicate key \"uid\", first on line 17"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.to);
    CHECK(refusal(with(c.from, c.to)) == c.message);
  }
}

TEST_CASE("of which walls something may stay unobserved in an engine without benchsand's runtime") {
  CHECK(parse_profile(kGood, "p.yaml")->without_runtime.empty());
  const std::string good = "without_runtime: refuse";
  const auto chosen = parse_profile(with(good, "without_runtime: [rootfs, evidence]"), "p.yaml");
  REQUIRE(chosen);
  CHECK(chosen->without_runtime == std::vector<std::string>{"rootfs", "evidence"});
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"[rootfs, memory]",
       "35:27: error: without_runtime: \"memory\" is none of \"network\", \"rootfs\", \"privileges\", \"syscalls\", "
       "\"evidence\""},
      {"[rootfs, rootfs]", "35:27: error: without_runtime: \"rootfs\" stands twice"},
      {"[]", "35:18: error: without_runtime: \"refuse\" is due here, or a list of walls"},
      {"accept", "35:18: error: without_runtime: \"refuse\" is due here, or a list of walls"},
      {"\"refuse\"", "35:18: error: without_runtime: \"refuse\" is due here, or a list of walls"},
  };
  for (const auto& [text, message] : wrong) {
    CAPTURE(text);
    CHECK(refusal(with(good, "without_runtime: " + text)) == message);
  }
}

TEST_CASE("what check_seccomp refuses is reported at the rules") {
  const std::string unknown = refusal(with("[read, write]", "[read, no_such_call]"));
  CHECK(unknown.starts_with("21:3: error: seccomp: "));
  CHECK(unknown.find("no_such_call") != std::string::npos);
  const std::string no_door = refusal(with("[execve, execveat, exit_group]", "[execve, exit_group]"));
  CHECK(no_door.starts_with("21:3: error: seccomp: "));
  CHECK(no_door.find("execveat") != std::string::npos);
}
