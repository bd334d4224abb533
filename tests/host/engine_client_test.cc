// Finding an engine, agreeing with it on a version, and what its errors become.
#include "shim/engine_client.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "fake_engine.h"
#include "oci/sha256.h"

using namespace benchsand;
using support::FakeEngine;
using support::TempFolder;
using Transport = Endpoint::Transport;
using nlohmann::json;

namespace {

// The variables that clients of engines read, set for a test and put back after it.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& wanted) {
    for (const char* name : {"HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS",
                             "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "CONTAINER_HOST", "CONTAINER_SSHKEY"}) {
      const char* value = std::getenv(name);
      before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : wanted) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : before_)
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

Endpoint found(ApiKind kind, const std::map<std::string, std::string>& environment) {
  const Environment set(environment);
  const auto endpoint = find_endpoint(kind);
  if (!endpoint) FAIL(endpoint.error().message);
  return *endpoint;
}

std::string not_found(ApiKind kind, const std::map<std::string, std::string>& environment) {
  const Environment set(environment);
  const auto endpoint = find_endpoint(kind);
  REQUIRE_FALSE(endpoint);
  return endpoint.error().message;
}

std::string said(const Endpoint& endpoint) {
  return endpoint.text() + " by " + endpoint.from;
}

// A folder of Docker's client with a context of that name; its place in contexts/tls.
std::string add_context(const TempFolder& folder, const std::string& name, const std::string& meta) {
  const std::string hash = sha256_hex(name);
  std::filesystem::create_directories(folder.path("contexts/meta/" + hash));
  folder.write("contexts/meta/" + hash + "/meta.json", meta);
  return "contexts/tls/" + hash + "/docker";
}

void add_pem(const TempFolder& folder, const std::string& place, const std::vector<std::string>& names) {
  std::filesystem::create_directories(folder.path(place));
  for (const auto& name : names) folder.write(place + "/" + name, "");
}

}  // namespace

TEST_CASE("an engine is where its own client would look for it") {
  const TempFolder folder;
  const std::string home = folder.path();
  CHECK(said(found(ApiKind::docker, {})) == "unix:///var/run/docker.sock by the default");
  CHECK(said(found(ApiKind::docker, {{"HOME", home}, {"DOCKER_HOST", ""}})) ==
        "unix:///var/run/docker.sock by the default");
  CHECK(said(found(ApiKind::docker, {{"DOCKER_HOST", "tcp://127.0.0.1:1"}, {"DOCKER_CONTEXT", "lab"}})) ==
        "tcp://127.0.0.1:1 by DOCKER_HOST");
  CHECK(said(found(ApiKind::docker, {{"DOCKER_HOST", "ssh://me@lab"}})) ==
        "ssh://me@lab/var/run/docker.sock by DOCKER_HOST");
  CHECK(said(found(ApiKind::podman, {})) == "unix:///run/podman/podman.sock by the default");
  CHECK(said(found(ApiKind::podman, {{"CONTAINER_HOST", "unix:///run/x.sock"}, {"DOCKER_HOST", "unix:///y"}})) ==
        "unix:///run/x.sock by CONTAINER_HOST");
  const Endpoint ssh = found(ApiKind::podman, {{"CONTAINER_HOST", "ssh://lab:22"}, {"CONTAINER_SSHKEY", "/k"}});
  CHECK(said(ssh) == "ssh://lab:22/run/podman/podman.sock by CONTAINER_HOST");
  CHECK(ssh.key_file == "/k");
  CHECK(not_found(ApiKind::docker, {{"DOCKER_HOST", "docker.sock"}}).starts_with("DOCKER_HOST: \"docker.sock\" is no"));
}

TEST_CASE("TLS of the environment is always verified, by an authority that is there") {
  const TempFolder folder;
  const std::string pem = folder.path("pem");
  add_pem(folder, "pem", {"ca.pem", "cert.pem", "key.pem"});
  for (const char* variable : {"DOCKER_TLS_VERIFY", "DOCKER_TLS", "DOCKER_CERT_PATH"}) {
    std::map<std::string, std::string> set = {{"DOCKER_HOST", "tcp://lab"}, {variable, "1"}};
    set["DOCKER_CERT_PATH"] = pem;
    const Endpoint endpoint = found(ApiKind::docker, set);
    CHECK(said(endpoint) == "https://lab:2376 by DOCKER_HOST");
    CHECK(endpoint.verify);
    CHECK(endpoint.ca_file == pem + "/ca.pem");
    CHECK(endpoint.certificate_file == pem + "/cert.pem");
    CHECK(endpoint.key_file == pem + "/key.pem");
  }
  const std::map<std::string, std::string> kTls = {{"DOCKER_TLS_VERIFY", "1"}, {"DOCKER_CERT_PATH", pem}};
  auto with = kTls;
  with["DOCKER_HOST"] = "tcp://lab:2375";
  CHECK(found(ApiKind::docker, with).text() == "https://lab:2375");
  with["DOCKER_HOST"] = "tcp://[::1]";
  CHECK(found(ApiKind::docker, with).text() == "https://[::1]:2376");
  with["DOCKER_HOST"] = "unix:///s";
  CHECK(found(ApiKind::docker, with).text() == "unix:///s");
  with["DOCKER_HOST"] = "tcp://lab";
  std::filesystem::remove(folder.path("pem/key.pem"));
  CHECK(not_found(ApiKind::docker, with) ==
        "DOCKER_HOST: " + pem + " has one of cert.pem and key.pem and not the other");
  std::filesystem::remove(folder.path("pem/ca.pem"));
  CHECK(not_found(ApiKind::docker, with) ==
        "DOCKER_HOST: TLS needs " + pem +
            "/ca.pem, which is not there (cure: DOCKER_CERT_PATH names the folder of ca.pem, cert.pem and key.pem)");
}

TEST_CASE("a context of Docker's client names an engine") {
  const TempFolder folder;
  const std::string config = folder.path();
  const auto meta = [](const std::string& docker) {
    return R"({"Name": "x", "Metadata": {}, "Endpoints": {"docker": )" + docker + "}}";
  };
  const std::string tls = add_context(folder, "lab", meta(R"({"Host": "tcp://lab:99", "SkipTLSVerify": false})"));
  CHECK(said(found(ApiKind::docker, {{"DOCKER_CONFIG", config}, {"DOCKER_CONTEXT", "lab"}})) ==
        "tcp://lab:99 by the docker context 'lab'");
  folder.write("config.json", R"({"auths": {}, "currentContext": "lab"})");
  CHECK(found(ApiKind::docker, {{"DOCKER_CONFIG", config}}).from == "the docker context 'lab'");
  CHECK(found(ApiKind::docker, {{"DOCKER_CONFIG", config}, {"DOCKER_CONTEXT", "default"}}).from == "the default");
  CHECK(found(ApiKind::docker, {{"DOCKER_CONFIG", config}, {"DOCKER_HOST", "unix:///s"}}).from == "DOCKER_HOST");
  add_pem(folder, tls, {"ca.pem"});
  const Endpoint endpoint = found(ApiKind::docker, {{"DOCKER_CONFIG", config}});
  CHECK(endpoint.text() == "https://lab:99");
  CHECK(endpoint.verify);
  CHECK(endpoint.ca_file == folder.path(tls + "/ca.pem"));

  add_context(folder, "blind", meta(R"({"Host": "tcp://lab", "SkipTLSVerify": true})"));
  const Endpoint blind = found(ApiKind::docker, {{"DOCKER_CONFIG", config}, {"DOCKER_CONTEXT", "blind"}});
  CHECK(blind.text() == "https://lab:2376");
  CHECK_FALSE(blind.verify);

  std::filesystem::create_directories(folder.path("home/.docker"));
  folder.write("home/.docker/config.json", R"({"currentContext": "other"})");
  const std::string none = sha256_hex("other");
  CHECK(not_found(ApiKind::docker, {{"HOME", folder.path("home")}}) ==
        "the docker context 'other', which " + folder.path("home/.docker/config.json") + " names, is not there: no " +
            folder.path("home/.docker/contexts/meta/" + none + "/meta.json") + " (cure: docker context ls)");
}

TEST_CASE("a file of Docker's client that cannot be understood is an error that names it") {
  const TempFolder folder;
  const std::map<std::string, std::string> kLab = {{"DOCKER_CONFIG", folder.path()}, {"DOCKER_CONTEXT", "lab"}};
  add_context(folder, "lab", "");
  const std::string path = folder.path("contexts/meta/" + sha256_hex("lab") + "/meta.json");
  const std::pair<const char*, std::string> kCases[] = {
      {"{", path + ": \"/\": no JSON from byte 2 on"},
      {"[]", path + ": it is no JSON object"},
      {"{}", path + ": it has no endpoint of Docker"},
      {R"({"Endpoints": {"docker": 1}})", path + ": it has no endpoint of Docker"},
      {R"({"Endpoints": {"docker": {}}})", path + ": it has no \"Host\""},
      {R"({"Endpoints": {"docker": {"Host": 1}}})", path + ": \"Host\" is no text"},
      {R"({"Endpoints": {"docker": {"Host": "x"}}})",
       "the docker context 'lab': \"x\" is no address of an engine: there is no scheme (as in unix:///run/docker.sock, "
       "tcp://127.0.0.1:2375, ssh://user@host)"}};
  for (const auto& [text, message] : kCases) {
    add_context(folder, "lab", text);
    CHECK(not_found(ApiKind::docker, kLab) == message);
  }
  folder.write("config.json", R"({"currentContext": ["lab"]})");
  CHECK(not_found(ApiKind::docker, {{"DOCKER_CONFIG", folder.path()}}) ==
        folder.path("config.json") + ": \"currentContext\" is no text");
}

namespace {

std::string connected(ApiKind kind, const Endpoint& endpoint) {
  const auto client = EngineClient::connect(kind, endpoint);
  if (!client) return client.error().message;
  return to_text(client->kind()) + std::string(" ") + client->version() + " by " + client->target("/x");
}

}  // namespace

TEST_CASE("an engine that is there is asked for its version") {
  const FakeEngine engine;
  CHECK(connected(ApiKind::docker, engine.endpoint()) == "docker 20.10.24 by /v1.41/x");
  CHECK(connected(ApiKind::podman, engine.endpoint()) == "podman 4.3.1 by /v4.0.0/libpod/x");
}

TEST_CASE("an engine that is not there: one message, with what to do") {
  const TempFolder folder;
  const auto at = [](const std::string& address) {
    const auto endpoint = parse_endpoint(address, "the default");
    REQUIRE(endpoint);
    return *endpoint;
  };
  const std::string none = "unix://" + folder.path("none"), file = "unix://" + folder.write("file", "");
  CHECK(connected(ApiKind::docker, at(none)) ==
        "GET /version at " + none +
            " (the default): there is no such socket (cure: start it with systemctl start docker, or dockerd, or name "
            "another with DOCKER_HOST)");
  CHECK(connected(ApiKind::podman, at(none)) ==
        "GET /v4.0.0/libpod/version at " + none +
            " (the default): there is no such socket (cure: start it with systemctl start podman.socket, or podman "
            "system service, or name another with CONTAINER_HOST)");
  CHECK(connected(ApiKind::docker, at(file)) ==
        "GET /version at " + file +
            " (the default): it is not a socket (cure: name the socket of the engine with DOCKER_HOST)");
  CHECK(connected(ApiKind::docker, at("tcp://127.0.0.1:1")) ==
        "GET /version at tcp://127.0.0.1:1 (the default): nobody listens there (cure: start the engine there)");
}

TEST_CASE("an engine that answers something else than its version is not called again") {
  const std::map<std::string, std::string> kAnswers = {
      {"error_json", "ask WHERE for its version: it says: the disk is full (500)"},
      {"error_empty", "ask WHERE for its version: it says: nothing (500)"},
      {"redirect", "ask WHERE for its version: it says: nothing (302)"},
      {"wrong_type", "ask WHERE for its version: the answer is text/html; charset=utf-8, not JSON"},
      {"no_json", "ask WHERE for its version: the answer: \"/ApiVersion\": no JSON from byte 30 on"},
      {"key_twice", "ask WHERE for its version: the answer: \"/ApiVersion\": the key stands twice"},
      {"late", "ask WHERE for its version: the answer is not that of docker"},
      {"closed", "GET /version at WHERE: it closes the connection without an answer"}};
  for (const auto& [name, due] : kAnswers) {
    CAPTURE(name);
    const FakeEngine engine({"--fault", name + "@GET:/version"});
    std::string message = due;
    message.replace(message.find("WHERE"), 5, engine.endpoint().text() + " (the test)");
    CHECK(connected(ApiKind::docker, engine.endpoint()) == message);
  }
}

TEST_CASE("a call's answer is JSON, or an error that says what was being done") {
  const FakeEngine engine({"--fault", "error_json@POST:/v1.41/error", "--fault", "wrong_type@GET:/v1.41/type",
                           "--fault", "no_json@GET:/v1.41/json", "--fault", "error_podman@GET:/v1.41/podman", "--fault",
                           "error_empty@GET:/v1.41/empty"});
  auto client = EngineClient::connect(ApiKind::docker, engine.endpoint());
  if (!client) FAIL(client.error().message);
  const auto call = [&](const std::string& method, const std::string& path, std::vector<int> good = {200}) {
    return client->call({method, path, "create the container", nullptr, std::move(good)});
  };
  const std::string where = engine.endpoint().text(),
                    says = "create the container: docker 20.10.24 at " + where + " says: ";
  CHECK(call("POST", "/error").error().message == says + "the disk is full (500)");
  CHECK(call("GET", "/podman").error().message == says + "looking up \"x\": no such container (404)");
  CHECK(call("GET", "/none").error().message == says + "page not found (404)");
  CHECK(call("GET", "/type").error().message ==
        "create the container: the answer is text/html; charset=utf-8, not JSON");
  CHECK(call("GET", "/json").error().message ==
        "create the container: the answer: \"/ApiVersion\": no JSON from byte 30 on");
  CHECK(call("GET", "/a b").error().message == "create the container: GET /v1.41/a b at " + where +
                                                   " (the test): the target has a character that no address has");
  const auto empty = call("GET", "/empty", {500});
  REQUIRE(empty);
  CHECK(empty->status == 500);
  CHECK(empty->body.is_null());
  const auto echoed = client->http().call({.method = "GET", .target = "/echo", .body = {}});
  REQUIRE(echoed);
  const auto found = call("GET", "/none", {404});
  REQUIRE(found);
  CHECK(found->body == json{{"message", "page not found"}});
}
