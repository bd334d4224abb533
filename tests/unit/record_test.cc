#include "oci/record.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "oci/bundle.h"
#include "oci/sha256.h"
#include "oci/timeline.h"
#include "sample.h"

using namespace benchsand;
using nlohmann::json;

namespace {

std::string file(const std::string& name) {
  std::ifstream in(std::string(BENCHSAND_SOURCE_DIR) + "/tests/golden/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write(const std::string& name, const std::string& text) {
  std::ofstream(std::string(BENCHSAND_SOURCE_DIR) + "/tests/golden/" + name) << text;
}

json sample_record() {
  const Policy policy = sample::policy();
  const HostFacts host = sample::host(CgroupLayout::v2);
  const auto rules = wall_rules(policy, host);
  const auto evidence = sample::evidence(rules);
  End end;
  end.cause = Cause::exited;
  end.exit_code = 0;
  RunFacts run;
  run.id = "r000000000000000000000000";
  run.created = "2026-01-01T00:00:00Z";
  run.delegate = {"crun", "1.8.1", std::string(64, 'd')};
  run.config_sha256 = std::string(64, 'e');
  run.outputs = {{"a\xff\n", 1, std::string(64, 'f')}};
  Timeline timeline(100'000);
  timeline.add({100'123, 4096, 50, 1, 0, 0});
  run.timeline = timeline.json();
  run.outputs_refused = {{"link", "symbolic link"}};
  return make_record(policy, host, run, rules, evidence, end, judge(rules, evidence, end, std::nullopt));
}

void only_integers_and_ascii_keys(const json& value) {
  CHECK_FALSE(value.is_number_float());
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) {
      for (const char c : key) CHECK(static_cast<unsigned char>(c) < 0x80);
      only_integers_and_ascii_keys(inner);
    }
  if (value.is_array())
    for (const auto& inner : value) only_integers_and_ascii_keys(inner);
}

}  // namespace

TEST_CASE("SHA-256 of known texts") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("a record has every key that things outside depend on") {
  const json record = sample_record();
  CHECK(record["schema"] == "benchsand.record/v1");
  for (const char* path : {"/id",
                           "/created",
                           "/task/name",
                           "/task/sha256",
                           "/profile/name",
                           "/profile/sha256",
                           "/policy/limits/memory_bytes",
                           "/notices",
                           "/engine/name",
                           "/engine/delegate/version",
                           "/engine/delegate/sha256",
                           "/host/kernel",
                           "/host/cgroup",
                           "/bundle/config_sha256",
                           "/evidence/established/memory/swap/observed",
                           "/evidence/spent/cpu-time/used_us/source",
                           "/evidence/refusals/by_call",
                           "/evidence/refusals/total",
                           "/evidence/refusals/sockets",
                           "/evidence/refusals/egress_bytes",
                           "/evidence/after/teardown/cgroup/observed",
                           "/end/cause",
                           "/end/exit_code",
                           "/end/signal",
                           "/verdict/scored",
                           "/verdict/outcome",
                           "/verdict/tier",
                           "/verdict/failures",
                           "/verification",
                           "/outputs/0/path",
                           "/outputs_refused/0/reason",
                           "/stdout/bytes",
                           "/stdout/kept",
                           "/stdout/sha256",
                           "/stderr/bytes",
                           "/policy/timeline_us",
                           "/timeline/samples/0/memory_bytes",
                           "/timeline/samples/0/refusals",
                           "/digest"}) {
    CAPTURE(path);
    CHECK(record.contains(json::json_pointer(path)));
  }
  CHECK(record["outputs"][0]["path"] == "a\\xff\n");
  only_integers_and_ascii_keys(record);
}

TEST_CASE("the digest is over all the rest, whatever the order or layout") {
  json record = sample_record();
  CHECK(digest_matches(record));
  CHECK(digest_matches(json::parse(record.dump(4))));
  CHECK(sample_record() == record);
  record["verdict"]["scored"] = false;
  CHECK_FALSE(digest_matches(record));
  record.erase("digest");
  CHECK_FALSE(digest_matches(record));
  CHECK(canonical_json(json::parse(R"({"b": 1, "a": ["\u00e9", true]})")) == R"({"a":["\u00e9",true],"b":1})");
}

TEST_CASE("any bytes become text that can be told apart again") {
  const std::pair<std::string, std::string> rows[] = {{"plain", "plain"},
                                                      {"\xff", "\\xff"},
                                                      {"\\x41", "\\\\x41"},
                                                      {"caf\xc3\xa9", "caf\xc3\xa9"},
                                                      {"\xc0\xaf", "\\xc0\\xaf"},
                                                      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
                                                      {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
                                                      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
                                                      {"\xe2\x82", "\\xe2\\x82"},
                                                      {"a\\b", "a\\\\b"},
                                                      {"\\\x80", "\\\\\\x80"}};
  for (const auto& [bytes, text] : rows) CHECK(printable(bytes) == text);
}

TEST_CASE("config.json is byte-stable for every delegate and cgroup layout") {
  for (const auto layout : {CgroupLayout::hybrid, CgroupLayout::v2})
    for (const bool swap_file : {true, false}) {
      const std::string name = std::string("config-") + to_text(layout) + (swap_file ? "" : "-no-swap-file") + ".json";
      CAPTURE(name);
      const BundlePlaces places = {"/run/benchsand-mounts/rootfs",
                                   "/run/benchsand-mounts/output",
                                   "/benchsand/r000000000000000000000000/ct",
                                   "/run/benchsand/r000000000000000000000000/listener",
                                   swap_file,
                                   {"/run/benchsand-mounts/input-0"},
                                   "/run/benchsand-mounts/user-namespace",
                                   "/dev"};
      const std::string text = render_bundle(sample::policy(), sample::host(layout), places);
      if (std::getenv("BENCHSAND_WRITE_GOLDEN")) write(name, text);  // to look at the difference in git
      CHECK(text == file(name));
      CHECK(text == render_bundle(sample::policy(), sample::host(layout), places));
    }
}

TEST_CASE("a cpuset is in config.json and in the record where it was asked for, and nowhere else") {
  const BundlePlaces places = {"/r", "/o", "/c", "/l", true};
  Policy policy = sample::policy();
  for (const auto layout : {CgroupLayout::hybrid, CgroupLayout::v2}) {
    policy.cpuset = "";
    CHECK_FALSE(
        json::parse(render_bundle(policy, sample::host(layout), places))["linux"]["resources"]["cpu"].contains("cpus"));
    CHECK(policy_json(policy)["cpuset"] == nullptr);
    policy.cpuset = "0-1";
    CHECK(json::parse(render_bundle(policy, sample::host(layout), places))["linux"]["resources"]["cpu"]["cpus"] ==
          "0-1");
    CHECK(policy_json(policy)["cpuset"] == "0-1");
  }
}

TEST_CASE("what was noticed during the run follows what was decided") {
  Policy policy = sample::policy();
  policy.notices = {"decided"};
  const auto rules = wall_rules(policy, sample::host(CgroupLayout::v2));
  const auto evidence = sample::evidence(rules);
  RunFacts run;
  run.notices = {"host: \xff"};
  const json record = make_record(policy, sample::host(CgroupLayout::v2), run, rules, evidence, End{}, Verdict{});
  CHECK(record["notices"] == json::array({"decided", "host: \\xff"}));
}

TEST_CASE("config.json carries every wall that config.json can carry") {
  const json config =
      json::parse(render_bundle(sample::policy(), sample::host(CgroupLayout::v2), {"/r", "/o", "/c", "/l", true}));
  CHECK(config["root"]["readonly"] == true);
  CHECK(config["hostname"] == "benchsand");  // a new uts namespace starts with the host's own name
  CHECK(config["process"]["noNewPrivileges"] == true);
  CHECK(config["process"]["user"]["uid"] == 65534);
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"})
    CHECK(config["process"]["capabilities"][set] == json::array());
  CHECK(config["process"]["args"][1] == "a 'b' \"c\" $d \n e");
  CHECK(config["linux"]["resources"]["memory"]["limit"] == config["linux"]["resources"]["memory"]["swap"]);
  CHECK(config["linux"]["resources"]["unified"]["memory.swap.max"] == "0");
  CHECK(config["linux"]["resources"]["pids"]["limit"] == 32);
  CHECK(config["linux"]["seccomp"]["listenerPath"] == "/l");
  int writable = 0;
  for (const auto& mount : config["mounts"]) {
    bool read_only = false;
    for (const auto& option : mount["options"]) read_only |= option == "ro";
    writable += !read_only;
  }
  CHECK(writable == 1);
  // Without a place for the run's own devices the delegate makes them: `benchsand bundle` starts nothing that could.
  CHECK(config["mounts"][1]["destination"] == "/dev");
  CHECK(config["mounts"][1]["type"] == "tmpfs");
  std::string types;
  for (const auto& entry : config["linux"]["namespaces"])
    types += entry["type"].get<std::string>() + (entry.contains("path") ? "!" : "") + " ";
  CHECK(types == "pid mount ipc uts network cgroup ");
  CHECK_FALSE(config["linux"].contains("uidMappings"));
}
