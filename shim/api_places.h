// Where an engine's API is: what the environment and the files of Docker's and Podman's own clients say. Without libcurl: `doctor`
// asks too.
#pragma once

#include "oci/engine_endpoint.h"

namespace benchsand {

// docker: DOCKER_HOST (with DOCKER_TLS_VERIFY, DOCKER_CERT_PATH), else DOCKER_CONTEXT or the current context of DOCKER_CONFIG's
// config.json, else /var/run/docker.sock. podman: CONTAINER_HOST (CONTAINER_SSHKEY), else /run/podman/podman.sock.
Result<Endpoint> find_endpoint(ApiKind kind);

inline constexpr const char* kByDefault = "the default";  // Endpoint::from where nobody says anything

// A connection to a unix socket was refused: whether that is because something else has its name.
bool is_no_socket(const std::string& path);
inline constexpr const char* kNotASocket = "it is not a socket";

}  // namespace benchsand
