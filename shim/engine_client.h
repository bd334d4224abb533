// The API of Docker or of Podman, ready for calls: found, reached, and of a version that both sides speak.
//
// Podman is called by its own API (libpod): the one that imitates Docker's has no place for a runtime. What an engine answers
// is never evidence.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shim/api_places.h"
#include "shim/http.h"

namespace benchsand {

class EngineClient {
 public:
  // Reaches the engine and agrees on a version: Docker 1.41 to the newest of both, libpod 4 or newer.
  static Result<EngineClient> connect(ApiKind kind);
  static Result<EngineClient> connect(ApiKind kind, Endpoint endpoint);

  ApiKind kind() const { return kind_; }
  const std::string& version() const { return version_; }          // of the engine: 20.10.24
  const std::string& api_version() const { return api_version_; }  // 1.41, 4.3.1
  const Endpoint& endpoint() const { return http_.endpoint(); }
  Http& http() { return http_; }

  // The target with the version's prefix: "/v1.41" or "/v4.0.0/libpod".
  std::string target(const std::string& path) const;

  // `what` is what is being done, for messages: "create the container". Another status than those of `good` is an error with the
  // engine's own words. An answer that is no JSON where there should be some is an error too; an empty body is null.
  struct Call {
    std::string method, path, what;
    nlohmann::json body = nullptr;  // null: none
    std::vector<int> good = {200, 201, 204};
    std::uint64_t within_us = 30'000'000;
    int most_failures = 0;  // of what changes nothing: answers of 500 after which it is asked again, a moment later
  };
  struct Answer {
    int status = 0;
    nlohmann::json body;
  };
  Result<Answer> call(const Call& call);

  // "WHAT: docker 20.10.24 at unix:///run/docker.sock says: MESSAGE (500)"
  std::unexpected<Error> refused(const std::string& what, const HttpAnswer& answer) const;

 private:
  EngineClient(ApiKind kind, Http http) : kind_(kind), http_(std::move(http)) {}
  ApiKind kind_;
  Http http_;
  std::string version_, api_version_;
};

}  // namespace benchsand
