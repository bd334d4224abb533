#include "shim/engine_container.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "oci/engine_says.h"
#include "shim/engine_service.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::uint64_t kStartWithin = 120'000'000;  // the monitor's own deadlines are shorter
constexpr std::uint64_t kSeesTheEndWithin = 30'000'000;
constexpr std::uint64_t kRemoveWithin = 60'000'000;
constexpr int kMostFailedLooks = 10;
constexpr std::uint64_t kSaysWithin = 5'000'000;  // of an engine that has just failed

std::string place(const std::string& id, const std::string& what = "") {
  return "/containers/" + url_encoded(id) + (what.empty() ? "" : "/" + what);
}

bool is_id(const std::string& id) {
  return id.size() == 64 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

const json* text_in(const json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (object.is_object() && object.contains(key) && object[key].is_string()) return &object[key];
  return nullptr;
}

}  // namespace

Result<CreatedContainer> create_container(EngineClient& engine, const std::string& name, const json& body) {
  const std::string path =
      engine.kind() == ApiKind::docker ? "/containers/create?name=" + url_encoded(name) : "/containers/create";
  const auto answer = TRY(engine.call({"POST", path, "create the container", body, {201}}));
  const json* id = text_in(answer.body, {"Id"});
  if (id == nullptr || !is_id(*id))
    return fault("create the container: " + std::string(to_text(engine.kind())) +
                 " answers with no id of 64 hexadecimal digits");
  CreatedContainer created{*id, {}};
  if (answer.body.contains("Warnings") && answer.body["Warnings"].is_array())
    for (const auto& warning : answer.body["Warnings"])
      if (warning.is_string()) created.warnings.push_back(warning);
  return created;
}

Result<std::string> benchsand_runtime_of(EngineClient& engine) {
  const auto answer = TRY(engine.call({"GET", "/info", "ask for the runtimes", nullptr, {200}}));
  const std::string name = "benchsand";
  if (engine.kind() == ApiKind::docker) {
    const json::json_pointer known("/Runtimes/" + name);
    return answer.body.contains(known) ? name : std::string();
  }
  const json::json_pointer own("/host/ociRuntime/name");
  if (!answer.body.contains(own) || !answer.body[own].is_string()) return std::string();
  const std::string runtime = answer.body[own];  // as the service was given it: a name, or a path
  const bool ours = runtime.substr(runtime.rfind('/') + 1).starts_with(name);  // npos + 1 is 0
  return ours ? runtime : std::string();
}

namespace {

// By its file's name, as it is installed, or because it is the one beside this program.
std::string what_is_wrong_with(const std::string& path) {
  std::error_code failed;
  const auto found = std::filesystem::canonical(path, failed);
  if (failed) return path + ", which is not there";
  const auto ours = our_runtime();
  if (found.filename() == "benchsand-runtime" || (ours && found.string() == *ours)) return "";
  return path + ", which is not benchsand's";
}

}  // namespace

std::string wrong_runtime(EngineClient& engine) {
  const bool docker = engine.kind() == ApiKind::docker;
  const auto answer = engine.call({"GET", "/info", "ask for the runtimes", nullptr, {200}, kSaysWithin});
  const json::json_pointer place(docker ? "/Runtimes/benchsand/path" : "/host/ociRuntime/path");
  if (!engine.endpoint().is_local() || !answer || !answer->body.contains(place) || !answer->body[place].is_string())
    return "";
  const std::string wrong = what_is_wrong_with(answer->body[place]);
  if (wrong.empty()) return "";
  return std::string(to_text(engine.kind())) + "'s runtime benchsand is " + wrong + " (cure: " +
         (docker ? "take it out of Docker's daemon.json; then benchsand install docker, and systemctl reload docker"
                 : "benchsand install podman, and podman --runtime benchsand system service") +
         ")";
}

Result<void> start_container(EngineClient& engine, const std::string& id) {
  EngineClient::Call call{"POST", place(id, "start"), "start the container", nullptr, {204}};
  call.within_us = kStartWithin;
  TRY(engine.call(call));
  return {};
}

// Podman reads of the container's process in /proc, and fails when that ends meanwhile ("read /proc/7264/cgroup: no such process",
// 500). Asked again it has seen the end; an engine that goes on to fail is told as it is.
Result<json> inspect_container(EngineClient& engine, const std::string& id) {
  EngineClient::Call look{"GET", place(id, "json"), "look at the container", nullptr, {200}};
  look.most_failures = kMostFailedLooks;
  auto answer = TRY(engine.call(look));
  if (!answer.body.is_object())
    return fault("look at the container: " + std::string(to_text(engine.kind())) + " answers with no object");
  return std::move(answer.body);
}

Result<bool> asks_for_no_swap_limit(EngineClient& engine, const json& inspect) {
  const json::json_pointer shown("/HostConfig/MemorySwap");
  if (engine.kind() != ApiKind::docker || !inspect.contains(shown) || inspect[shown] != -1) return false;
  const auto answer = TRY(engine.call({"GET", "/info", "ask for swap limits", nullptr, {200}}));
  return answer.body.is_object() && answer.body.contains("SwapLimit") && answer.body["SwapLimit"] == false;
}

namespace {

// Returns when the engine has seen the container end, or says why it does not wait.
Result<void> wait_for_engine(EngineClient& engine, const std::string& id) {
  // The body is nothing to rely on: libpod calls the same number text or JSON.
  const HttpRequest request{.method = "POST", .target = engine.target(place(id, "wait")), .body = {}};
  const auto answer = TRY(engine.http().call(request));
  if (answer.status != 200) return engine.refused("wait for the engine to see the end", answer);
  return {};
}

}  // namespace

Result<json> inspect_ended_container(EngineClient& engine, const std::string& id) {
  for (const std::uint64_t deadline = sys::monotonic_us() + kSeesTheEndWithin;;) {
    json said = TRY(inspect_container(engine, id));
    if (!is_running(said) || sys::monotonic_us() > deadline) return said;
    TRY_VOID(wait_for_engine(engine, id));
    ::usleep(10'000);  // of an engine whose wait is over at once
  }
}

Result<void> kill_container(EngineClient& engine, const std::string& id) {
  TRY(engine.call({"POST", place(id, "kill"), "kill the container", nullptr, {200, 204, 404, 409}}));
  return {};
}

Result<void> remove_container(EngineClient& engine, const std::string& id) {
  EngineClient::Call call{"DELETE", place(id) + "?force=true&v=true", "remove the container", nullptr, {200, 204, 404}};
  call.within_us = kRemoveWithin;
  TRY(engine.call(call));
  return {};
}

Result<std::vector<ListedContainer>> list_containers(EngineClient& engine, const std::string& label) {
  const json filters = {{"label", {label}}};
  const auto answer = TRY(engine.call({"GET",
                                       "/containers/json?all=true&filters=" + url_encoded(filters.dump()),
                                       "list the containers",
                                       nullptr,
                                       {200}}));
  if (!answer.body.is_array()) return fault("list the containers: the answer is no list");
  std::vector<ListedContainer> list;
  for (const auto& entry : answer.body) {
    const json* id = text_in(entry, {"Id"});
    if (id == nullptr || !is_id(*id)) return fault("list the containers: an entry has no id");
    ListedContainer listed{*id, "", json::object()};
    if (entry.contains("Names") && entry["Names"].is_array() && !entry["Names"].empty() &&
        entry["Names"][0].is_string())
      listed.name = entry["Names"][0].get<std::string>();
    if (entry.contains("Labels") && entry["Labels"].is_object()) listed.labels = entry["Labels"];
    list.push_back(std::move(listed));
  }
  return list;
}

}  // namespace benchsand
