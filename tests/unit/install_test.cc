#include "oci/install.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace benchsand;

namespace {

const Registration kTwo = {{{"benchsand", "/opt/r/benchsand"}, {"benchsand-python", "/opt/r/benchsand-python"}},
                           {"crun", "runc"}};
const Registration kOther = {{{"benchsand", "/new/benchsand"}, {"benchsand-mine", "/new/benchsand-mine"}}, {"crun"}};
constexpr auto kEngines = {EngineKind::docker, EngineKind::podman, EngineKind::containerd};

std::string added(EngineKind engine, const std::string& text, const Registration& registration = kTwo) {
  const auto done = add_runtimes(engine, text, "FILE", registration);
  INFO(text);
  REQUIRE_MESSAGE(done, done.error().message);
  return *done;
}

std::string removed(EngineKind engine, const std::string& text) {
  const auto done = remove_runtimes(engine, text, "FILE");
  INFO(text);
  REQUIRE_MESSAGE(done, done.error().message);
  return *done;
}

std::string refusal(EngineKind engine, const std::string& text) {
  const auto done = add_runtimes(engine, text, "FILE", kTwo);
  INFO(text);
  REQUIRE_FALSE(done);
  CHECK(done.error().kind == Error::Kind::usage);
  return done.error().message;
}

// Files as people write them, none of benchsand in them.
const std::vector<std::string> kDaemonFiles = {
    "{\"debug\":true}",
    "{ \"debug\": true, \"log-level\": \"warn\" }\n",
    "{\n  \"debug\": true\n}\n",
    "{\n\t\"debug\": true,\n\n\t\"hosts\": [\"unix:///x\", \"}\"]\n}",
    "{\r\n    \"debug\": true\r\n}\r\n",
    "\n  {\n  \"a \\\" , } \\\\\": {\"b\": [1, {\"c\": null}]} ,\n  \"exec-opts\": []\n  }\n\n",
    "{\n  \"runtimes\": {\n    \"kata\": {\n      \"path\": \"/usr/bin/kata\"\n    }\n  },\n  \"debug\": false\n}\n",
    "{\"runtimes\":{\"kata\":{\"path\":\"/k\"},\"crun\":{\"path\":\"/c\",\"runtimeArgs\":[\"x\"]}}}",
    "\xEF\xBB\xBF{\n \"debug\": true\n}\n",
    "{\n \"r\\u0075n\": 1, \"default-runtime\": \"runc\"\n}\n",
};

const std::vector<std::string> kContainerdFiles = {
    "version = 2\n",
    "version = 2",
    "# mine\nversion = 2 # two\n\n[plugins]\n  [plugins.\"io.containerd.grpc.v1.cri\"]\n    sandbox_image = "
    "\"x\"\n\n\n",
    "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\nruntime_type = \"a\"\n"
    "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n",
    "version = 3\r\n[debug]\r\n  level = \"info\"\r\n",
    "version = 3\nx = \"\"\"\n[not.a.table]\n# >>> nor a comment\n\"\"\"\nlist = [ # of two\n 1,\n [2, 3],\n]\n",
    "# only a comment\n",
    "version = 2\nlast = 1\t\t",
};

}  // namespace

TEST_CASE("install and uninstall give back every byte") {
  for (const auto& text : kDaemonFiles) CHECK(removed(EngineKind::docker, added(EngineKind::docker, text)) == text);
  for (const auto& text : kContainerdFiles)
    CHECK(removed(EngineKind::containerd, added(EngineKind::containerd, text)) == text);
  for (const auto engine : kEngines) {
    CHECK(removed(engine, added(engine, "")) == "");
    CHECK(removed(engine, "") == "");
  }
}

TEST_CASE("a second install changes nothing, another one only what is benchsand's") {
  for (const auto engine : kEngines) {
    auto files = engine == EngineKind::docker ? kDaemonFiles : kContainerdFiles;
    if (engine == EngineKind::podman) files = {};
    files.push_back("");
    for (const auto& text : files) {
      const auto once = added(engine, text);
      CHECK(once != text);
      CHECK(added(engine, once) == once);
      CHECK(added(engine, once, kOther) == added(engine, text, kOther));
      CHECK(removed(engine, added(engine, once, kOther)) == text);
    }
  }
}

TEST_CASE("uninstall of a file that has nothing of benchsand") {
  for (const auto& text : kDaemonFiles) CHECK(removed(EngineKind::docker, text) == text);
  for (const auto& text : kContainerdFiles) CHECK(removed(EngineKind::containerd, text) == text);
}

TEST_CASE("daemon.json means what it meant, and the runtimes") {
  for (const auto& text : kDaemonFiles) {
    auto expected = nlohmann::json::parse(text);
    for (const auto& runtime : kTwo.runtimes) expected["runtimes"][runtime.name]["path"] = runtime.path;
    CHECK(nlohmann::json::parse(added(EngineKind::docker, text)) == expected);
  }
  CHECK(added(EngineKind::docker, "{\n    \"debug\": true\n}\n") ==
        "{\n    \"debug\": true,\n    \"runtimes\": {\n        \"benchsand\": {\"path\":\"/opt/r/benchsand\"},\n"
        "        \"benchsand-python\": {\"path\":\"/opt/r/benchsand-python\"}\n    }\n}\n");
  CHECK(added(EngineKind::docker, "{\"a\":1,\"runtimes\":{\"k\":{\"path\":\"/k\"}}}") ==
        "{\"a\":1,\"runtimes\":{\"k\":{\"path\":\"/k\"}, \"benchsand\": {\"path\":\"/opt/r/benchsand\"}, "
        "\"benchsand-python\": {\"path\":\"/opt/r/benchsand-python\"}}}");
}

TEST_CASE("what others added since stays, wherever they put it") {
  auto text = added(EngineKind::docker, "{\n  \"debug\": true\n}\n");
  text.insert(text.find("\"benchsand\""), "\"kata\": {\"path\": \"/k\"}, ");
  text.insert(text.rfind('}', text.rfind('}') - 1), ",\n    \"last\": {\"path\": \"/l\"}\n  ");
  const auto rest = nlohmann::json::parse(removed(EngineKind::docker, text));
  CHECK(rest.dump() == R"({"debug":true,"runtimes":{"kata":{"path":"/k"},"last":{"path":"/l"}}})");

  const std::string more = "\n[debug]\n  level = \"info\"\n";
  text = added(EngineKind::containerd, "version = 2\n") + more;
  CHECK(removed(EngineKind::containerd, text) == "version = 2\n" + more);
  CHECK(added(EngineKind::containerd, text) == text);
}

TEST_CASE("a daemon.json that cannot be added to") {
  const auto says = [](const std::string& text) { return refusal(EngineKind::docker, text); };
  CHECK(says("{\n  \"debug\": true,\n}\n").starts_with("read FILE: parse error at line 3, column 1: "));
  CHECK(says("{\"a\": 1} x").starts_with("read FILE: parse error at line 1, column 10: "));
  CHECK(says("{\"debug\": tru").starts_with("read FILE: parse error at line 1, column 1"));
  CHECK(says("[]") == "read FILE: its content is no object");
  CHECK(says("{\"runtimes\": []}") == "read FILE: 'runtimes' is no object");
  CHECK(says("{\"Runtimes\": {}}") == "read FILE: 'Runtimes' has to be written 'runtimes'");
  CHECK(says("{\"runtimes\": {}, \"Runtimes\": {}}") == "read FILE: 'Runtimes' stands twice in it; remove one of them");
  CHECK(says("{\"runtimes\": {\"a\": {}, \"\\u0061\": {}}}") ==
        "read FILE: 'a' stands twice in 'runtimes'; remove one of them");
  for (const char* taken : {R"({"path":"/usr/bin/mine"})", R"({"path":"/b/benchsand","runtimeArgs":["--debug"]})",
                            R"({"runtimeType":"io.containerd.runc.v2"})"})
    CHECK(says("{\"runtimes\": {\"benchsand\": " + std::string(taken) + "}}") ==
          "register benchsand in FILE: a runtime of that name is there already, as " + std::string(taken) +
              "; remove or rename it");
}

TEST_CASE("the default runtime of dockerd is not taken away") {
  const auto done =
      remove_runtimes(EngineKind::docker,
                      R"({"default-runtime": "benchsand", "runtimes": {"benchsand": {"path": "/benchsand"}}})", "FILE");
  REQUIRE_FALSE(done);
  CHECK(done.error().message == "remove benchsand from FILE: it is the default-runtime there; set another one first");
}

TEST_CASE("only what install writes is taken out of daemon.json") {
  const std::string text =
      R"({"runtimes": {"benchsand-x": {"path": "/usr/bin/other"}, "other": {"path": "/b/other"}, "benchsand": {"path": "/b/benchsand"}}})";
  CHECK(removed(EngineKind::docker, text) ==
        R"({"runtimes": {"benchsand-x": {"path": "/usr/bin/other"}, "other": {"path": "/b/other"}}})");
}

TEST_CASE("containerd: handlers of both versions") {
  const std::string three = added(EngineKind::containerd, "version = 3\n");
  CHECK(three.find("[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.benchsand-python]\n"
                   "  runtime_type = \"io.containerd.runc.v2\"\n") != std::string::npos);
  const std::string two = added(EngineKind::containerd, "");
  CHECK(two.find("\nversion = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.benchsand]\n") !=
        std::string::npos);
  CHECK(two.find("    BinaryName = \"/opt/r/benchsand-python\"\n") != std::string::npos);
}

TEST_CASE("a config.toml that cannot be added to") {
  const auto says = [](const std::string& text) { return refusal(EngineKind::containerd, text); };
  const std::string cri = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"";
  CHECK(says("disabled_plugins = []\n") ==
        "read FILE: it has no version, and so is of version 1; only versions 2 and 3 are known: see containerd config "
        "migrate");
  CHECK(says("version = 1\n").starts_with("read FILE: it has version 1; "));
  CHECK(says("version = 2\ndisabled_plugins = [\"cri\"]\n")
            .starts_with("register with FILE: its disabled_plugins hold 'cri', whose handlers these are; "));
  CHECK(says("disabled_plugins = [\"cri\"]\n").starts_with("register with FILE: its disabled_plugins hold 'cri'"));
  CHECK(says(cri + ".containerd.runtimes.benchsand]\na = 1\n") ==
        "register benchsand in FILE: line 2 has a runtime of that name already; remove or rename it");
  CHECK(says(cri + ".containerd]\nruntimes.benchsand.runtime_type = \"x\"\n") ==
        "register benchsand in FILE: line 3 has a runtime of that name already; remove or rename it");
  CHECK(says(cri + "]\ncontainerd = {runtimes = {}}\n") ==
        "register benchsand in FILE: line 3 has 'containerd' in one line; write it as a table of its own");
  CHECK(says("version = 2\n[plugins\n") == "read FILE: not TOML at line 2, column 9: expected ]");
  const auto block = added(EngineKind::containerd, "version = 2\n");
  const std::string unclear = "read FILE: the block of benchsand has not one beginning and one end; remove it by hand";
  CHECK(says(block.substr(0, block.rfind("# <<<"))) == unclear);
  CHECK(says(block.substr(0, 12) + block.substr(block.find('\n', 12) + 1)) == unclear);
}

TEST_CASE("podman: a drop-in that keeps the list") {
  CHECK(added(EngineKind::podman, "") ==
        "# Written by benchsand install podman, and removed by its --uninstall.\n[engine]\n"
        "runtime_supports_json = [\"crun\", \"runc\", \"benchsand\", \"benchsand-python\"]\n\n[engine.runtimes]\n"
        "benchsand = [\"/opt/r/benchsand\"]\nbenchsand-python = [\"/opt/r/benchsand-python\"]\n");
  CHECK(refusal(EngineKind::podman, "[engine]\n") ==
        "register with FILE: benchsand has not written that file; name one of its own, which Podman reads too, as "
        "/etc/containers/containers.conf.d/benchsand.conf");
  using Names = std::vector<std::string>;
  CHECK(*podman_json_runtimes({}) == Names{"crun", "runc", "kata", "runsc", "youki", "krun", "ocijail"});
  CHECK(*podman_json_runtimes({{"a", "[engine]\nruntime_supports_json = [\"a\",\n 'b', ]\n"}, {"b", "[engine]\n"}}) ==
        Names{"a", "b"});
  const auto broken = podman_json_runtimes({{"a.conf", "[engine\n"}});
  REQUIRE_FALSE(broken);
  CHECK(broken.error().message == "read a.conf: not TOML at line 1, column 8: expected ]");
}

TEST_CASE("names of runtimes") {
  for (const char* good : {"benchsand", "benchsand-python", "a_1"}) CHECK(is_runtime_name(good));
  for (const char* bad : {"", "-a", "A", "a.b", "a b", "a/b", "\xC3\xA4"}) CHECK_FALSE(is_runtime_name(bad));
}

TEST_CASE("lines that differ") {
  CHECK(changed_lines("a\nb\nc\n", "a\nx\ny\nc\n") == "-b\n+x\n+y\n");
  CHECK(changed_lines("", "a\n") == "+a\n");
  CHECK(changed_lines("a\na\n", "a\n") == "-a\n");
  CHECK(changed_lines("a\n", "a\n") == "");
}
