#include "shim/engine_gc.h"

#include <cstdlib>

#include "oci/record.h"
#include "shim/engine_container.h"
#include "shim/engine_owner.h"
#include "shim/engine_service.h"
#include "shim/front_desk.h"
#include "shim/run_folder.h"

namespace benchsand {

using nlohmann::json;

namespace {

using Lines = std::vector<std::string>;

std::string who(const EngineClient& engine) {
  return std::string(to_text(engine.kind())) + " at " + engine.endpoint().text();
}

Result<void> collect_containers(EngineClient& engine, Lines& lines) {
  for (const auto& container : TRY(list_containers(engine, kRunLabel))) {
    if (!has_name_of_run(container.name, container.labels) || owner_of(container.labels) != OwnerIs::dead) continue;
    const auto removed = remove_container(engine, container.id);
    lines.push_back(removed ? "removed container " + container.id + " from " + who(engine) +
                                  ": the benchsand that made it has ended"
                            : "left container " + container.id + ": " + removed.error().message);
  }
  return {};
}

// Docker has the list in an object, Podman has it bare.
Result<json> list_volumes(EngineClient& engine) {
  const bool docker = engine.kind() == ApiKind::docker;
  const json filters = {{"label", {kRunLabel}}};
  const std::string path =
      std::string(docker ? "/volumes" : "/volumes/json") + "?filters=" + url_encoded(filters.dump());
  auto answer = TRY(engine.call({"GET", path, "list the volumes", nullptr, {200}}));
  json list = std::move(answer.body);
  if (docker) list = list.is_object() && list.contains("Volumes") ? list["Volumes"] : json();
  if (list.is_null()) return json::array();  // how both say that there are none
  if (!list.is_array()) return fault("list the volumes: the answer is no list");
  return list;
}

Result<void> collect_volumes(EngineClient& engine, Lines& lines) {
  for (const auto& volume : TRY(list_volumes(engine))) {
    if (!volume.is_object() || !volume.contains("Name") || !volume["Name"].is_string()) continue;
    if (owner_of(volume.contains("Labels") ? volume["Labels"] : json()) != OwnerIs::dead) continue;
    const std::string name = volume["Name"];
    const auto removed =
        engine.call({"DELETE", "/volumes/" + url_encoded(name), "remove the volume", nullptr, {204, 404}});
    lines.push_back(removed ? "removed volume " + printable(name) + " from " + who(engine) +
                                  ": the benchsand that made it has ended"
                            : "left volume " + printable(name) + ": " + removed.error().message);
  }
  return {};
}

Result<void> collect_from(Result<EngineClient> engine, Lines& lines) {
  if (!engine) return std::unexpected(engine.error());
  TRY_VOID(collect_containers(*engine, lines));
  return collect_volumes(*engine, lines);
}

// The runs on a service of our own: what they left is in the store that such a service finds.
Result<void> collect_from_own_service(Lines& lines) {
  const auto dead = TRY(dead_podman_services(kOrderBase));
  if (dead.empty()) return {};
  const auto service = TRY(PodmanService::start(kOrderBase, TRY(new_run_id()), TRY(our_runtime())));
  TRY_VOID(collect_from(EngineClient::connect(ApiKind::podman, service.endpoint()), lines));
  for (const auto& left : dead) forget_podman_service(kOrderBase, left.run);
  return {};
}

// Where a socket is only expected, its absence is no news.
Result<void> collect_from_found(ApiKind kind, Lines& lines) {
  auto endpoint = TRY(find_endpoint(kind));
  if (!endpoint.is_local()) return {};
  if (endpoint.from == "the default" && !TRY(sys::exists(sys::kHere, endpoint.path))) return {};
  return collect_from(EngineClient::connect(kind, std::move(endpoint)), lines);
}

}  // namespace

std::vector<std::string> collect_engine_garbage() {
  Lines lines;
  const auto tell = [&](const char* engine, const Result<void>& done) {
    if (!done) lines.push_back(std::string("did not look into ") + engine + ": " + done.error().message);
  };
  tell("docker", collect_from_found(ApiKind::docker, lines));
  tell("podman", collect_from_own_service(lines));
  tell("podman", collect_from_found(ApiKind::podman, lines));
  return lines;
}

}  // namespace benchsand
