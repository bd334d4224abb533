#include "shim/engine_client.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "oci/engine_answer.h"
#include "oci/report.h"
#include "oci/strict_json.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr useconds_t kAskAgainUs = 50'000;

const char* variable(ApiKind kind) {
  return kind == ApiKind::docker ? "DOCKER_HOST" : "CONTAINER_HOST";
}

// What to do about a connection that did not come about.
std::string cure(ApiKind kind, const Endpoint& endpoint, int error_number) {
  const bool docker = kind == ApiKind::docker;
  switch (error_number) {
    case ENOENT:
    case ECONNREFUSED:
      if (!endpoint.is_local()) return "start the engine there";
      return std::string("start it with ") +
             (docker ? "systemctl start docker, or dockerd"
                     : "systemctl start podman.socket, or podman system service") +
             ", or name another with " + variable(kind);
    case EACCES:
      return "run it as root";
    case ENOTSOCK:
      return std::string("name the socket of the engine with ") + variable(kind);
    default:
      return "";
  }
}

// Of an answer that is no version.
std::string cure(ApiKind kind, const HttpAnswer& answer) {
  if (answer.body.contains("HTTPS server"))
    return " (cure: DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH for the folder of the certificates)";
  if (kind == ApiKind::podman && answer.status / 100 == 4) return " (cure: --engine docker, if it is Docker)";
  return "";
}

std::string version_target(ApiKind kind) {
  return kind == ApiKind::docker ? "/version" : std::string("/v") + kPodmanApi + "/libpod/version";
}

bool is_json(const std::string& content_type) {
  const std::string type = content_type.substr(0, content_type.find(';'));
  return folded(type) == folded("application/json");
}

// An empty body is null.
Result<json> document(const HttpAnswer& answer, const std::string& what) {
  if (answer.body.empty()) return json();
  if (!is_json(answer.content_type))
    return fault(what + ": the answer is " +
                 (answer.content_type.empty() ? "of no type" : on_one_line(answer.content_type)) + ", not JSON");
  auto parsed = parse_strict_json(answer.body, what + ": the answer");
  if (!parsed) return fault(parsed.error().message);  // of an engine, not of the caller
  return parsed;
}

}  // namespace

Result<EngineClient> EngineClient::connect(ApiKind kind) {
  return connect(kind, TRY(find_endpoint(kind)));
}

Result<EngineClient> EngineClient::connect(ApiKind kind, Endpoint endpoint) {
  EngineClient client(kind, TRY(Http::to(std::move(endpoint))));
  const std::string where = client.endpoint().text() + " (" + client.endpoint().from + ")";
  auto answer = client.http_.call({.method = "GET", .target = version_target(kind), .body = {}});
  if (!answer) {
    const std::string remedy = cure(kind, client.endpoint(), answer.error().error_number);
    answer.error().message += remedy.empty() ? "" : " (cure: " + remedy + ")";
    return std::unexpected(answer.error());
  }
  if (answer->status != 200)
    return fault("ask " + where + " for its version: it says: " + engine_words(answer->body) + " (" +
                 std::to_string(answer->status) + ")" + cure(kind, *answer));
  auto agreed = TRY(agree_on_version(kind, TRY(document(*answer, "ask " + where + " for its version")), where));
  client.version_ = std::move(agreed.engine);
  client.api_version_ = std::move(agreed.api);
  return client;
}

std::string EngineClient::target(const std::string& path) const {
  return kind_ == ApiKind::docker ? "/v" + api_version_ + path : std::string("/v") + kPodmanApi + "/libpod" + path;
}

Result<EngineClient::Answer> EngineClient::call(const Call& call) {
  HttpRequest request;
  request.method = call.method;
  request.target = target(call.path);
  if (!call.body.is_null()) request.body = call.body.dump();
  request.within_us = call.within_us;
  auto answer = http_.call(request);
  for (int failures = 0; failures < call.most_failures && answer && answer->status == 500; ++failures) {
    ::usleep(kAskAgainUs);
    answer = http_.call(request);
  }
  if (!answer) {
    answer.error().message = call.what + ": " + answer.error().message;
    return std::unexpected(answer.error());
  }
  if (std::find(call.good.begin(), call.good.end(), answer->status) == call.good.end())
    return refused(call.what, *answer);
  return Answer{answer->status, TRY(document(*answer, call.what))};
}

std::unexpected<Error> EngineClient::refused(const std::string& what, const HttpAnswer& answer) const {
  return fault(what + ": " + to_text(kind_) + " " + version_ + " at " + endpoint().text() +
               " says: " + engine_words(answer.body) + " (" + std::to_string(answer.status) + ")");
}

}  // namespace benchsand
