// One container of an engine, from its creation to its removal. Everything here is the engine's word: what was asked of it and what
// it answered.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shim/engine_client.h"

namespace benchsand {

struct CreatedContainer {
  std::string id;                     // 64 hex digits
  std::vector<std::string> warnings;  // "Your kernel does not support swap limit capabilities …"
};
// The body is oci/api_body's. Whatever an engine calls an id is checked before it becomes a path.
Result<CreatedContainer> create_container(EngineClient& engine, const std::string& name, const nlohmann::json& body);

// The runtime by which benchsand is known to the engine; empty: it has none. Podman has one runtime, its service's.
Result<std::string> benchsand_runtime_of(EngineClient& engine);

// Why what the engine calls benchsand is none of this installation's, and what to do about it; of an engine on this host. Empty:
// nothing says so.
std::string wrong_runtime(EngineClient& engine);

Result<void> start_container(EngineClient& engine, const std::string& id);
// As the engine shows it once it has seen the end; or, after half a minute, that it has not.
Result<nlohmann::json> inspect_ended_container(EngineClient& engine, const std::string& id);
// As the engine shows it.
Result<nlohmann::json> inspect_container(EngineClient& engine, const std::string& id);
// Whether an engine that shows no limit of memory and swap together does so because it sees none on its host, as it says itself.
Result<bool> asks_for_no_swap_limit(EngineClient& engine, const nlohmann::json& inspect);
Result<void> kill_container(EngineClient& engine, const std::string& id);
// With its anonymous volumes, and by force. One that is not there is fine.
Result<void> remove_container(EngineClient& engine, const std::string& id);

struct ListedContainer {
  std::string id, name;
  nlohmann::json labels;
};
// Every container, running or not, that has the label.
Result<std::vector<ListedContainer>> list_containers(EngineClient& engine, const std::string& label);

}  // namespace benchsand
