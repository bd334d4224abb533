// Where an engine's API is: a unix socket, TCP, TLS or SSH. Texts only; who reads environment and files is shim/engine_client.
#pragma once

#include <cstdint>
#include <string>

#include "oci/result.h"

namespace benchsand {

enum class ApiKind { docker, podman };
const char* to_text(ApiKind kind);

struct Endpoint {
  enum class Transport { unix_socket, tcp, tls, ssh };
  Transport transport = Transport::unix_socket;
  std::string path;  // of the unix socket, here or at the other end of ssh
  std::string user, host;
  std::uint16_t port = 0;
  std::string ca_file, certificate_file, key_file;  // TLS; the last one of ssh too
  bool verify = true;                               // the server's certificate
  std::string from;  // who says so, for messages: "DOCKER_HOST", "the docker context 'lab'", "the default"

  // Only then are its processes, cgroups and mounts this host's, and can be looked at.
  bool is_local() const { return transport == Transport::unix_socket; }
  std::string text() const;  // unix:///run/docker.sock
};

// unix://PATH, tcp://HOST[:PORT], http://…, https://…, ssh://[USER@]HOST[:PORT][/PATH]. Kind usage.
Result<Endpoint> parse_endpoint(const std::string& text, const std::string& from);

}  // namespace benchsand
