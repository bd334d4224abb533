// Calls the engine that the environment names: its version, what it answers to one more call, and that it can be called again.
// For tests/engines/endpoints.py. Not installed.
//
// usage: engine-version docker|podman [PATH]
#include <cstdio>
#include <string>

#include "shim/engine_client.h"

using namespace benchsand;

int main(int count, char** arguments) {
  const ApiKind kind = count > 1 && std::string(arguments[1]) == "podman" ? ApiKind::podman : ApiKind::docker;
  auto client = EngineClient::connect(kind);
  if (!client) {
    std::puts(client.error().message.c_str());
    return client.error().kind == Error::Kind::usage ? 2 : 3;
  }
  std::printf("%s %s, API %s, at %s (%s)%s\n", to_text(kind), client->version().c_str(), client->api_version().c_str(),
              client->endpoint().text().c_str(), client->endpoint().from.c_str(),
              client->endpoint().is_local() ? "" : ", not of this host");
  const auto answer = client->call({"GET", count > 2 ? arguments[2] : "/info", "look at the engine"});
  if (!answer) std::puts(answer.error().message.c_str());
  return answer && answer->body.is_structured() ? 0 : 3;
}
