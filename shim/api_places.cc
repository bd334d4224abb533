#include "shim/api_places.h"

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "oci/sha256.h"
#include "oci/strict_json.h"
#include "oci/yaml_tree.h"
#include "shim/sys.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr const char* kDockerSocket = "/var/run/docker.sock";
constexpr const char* kPodmanSocket = "/run/podman/podman.sock";

// Nothing where it is not set, or empty.
std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0 ? std::optional<std::string>(value) : std::nullopt;
}

// Nothing without a home.
std::optional<std::string> docker_folder() {
  if (auto folder = variable("DOCKER_CONFIG")) return folder;
  const auto home = variable("HOME");
  return home ? std::optional(*home + "/.docker") : std::nullopt;
}

// Nothing where there is no such file.
Result<std::optional<json>> read_json(const std::string& path) {
  const auto text = sys::read_file(sys::kHere, path);
  if (!text && text.error().error_number == ENOENT) return std::nullopt;
  if (!text) return std::unexpected(text.error());
  auto document = TRY(parse_strict_json(*text, path));
  if (!document.is_object()) return usage(path + ": it is no JSON object");
  return std::optional(std::move(document));
}

Result<std::string> text_at(const json& object, const char* key, const std::string& path) {
  if (!object.contains(key)) return std::string();
  if (!object[key].is_string()) return usage(path + ": " + in_quotes(key) + " is no text");
  return object[key].get<std::string>();
}

struct TlsFiles {
  std::string folder;
  bool verify = true;
  bool own_authority = false;  // ca.pem has to be there: not any authority of the system will do
};

// `default_port`: the port was not named.
Result<void> use_tls(Endpoint& endpoint, const TlsFiles& files, bool default_port) {
  if (endpoint.transport != Endpoint::Transport::tcp && endpoint.transport != Endpoint::Transport::tls) return {};
  if (default_port) endpoint.port = 2376;
  endpoint.transport = Endpoint::Transport::tls;
  endpoint.verify = files.verify;
  for (const auto& [name, file] :
       {std::pair{"/ca.pem", &endpoint.ca_file}, std::pair{"/cert.pem", &endpoint.certificate_file},
        std::pair{"/key.pem", &endpoint.key_file}})
    if (TRY(sys::exists(sys::kHere, files.folder + name))) *file = files.folder + name;
  if (files.own_authority && endpoint.ca_file.empty())
    return usage(
        endpoint.from + ": TLS needs " + files.folder +
        "/ca.pem, which is not there (cure: DOCKER_CERT_PATH names the folder of ca.pem, cert.pem and key.pem)");
  if (endpoint.certificate_file.empty() != endpoint.key_file.empty())
    return usage(endpoint.from + ": " + files.folder + " has one of cert.pem and key.pem and not the other");
  return {};
}

bool names_no_port(const std::string& text) {
  const std::size_t last = text.find_last_of(":]");
  return last == text.find("://") || text[last] == ']';
}

// As Docker's client does; but a certificate that is not verified would prove nothing, so DOCKER_TLS does not lead to that.
Result<Endpoint> docker_from_environment(const std::string& text) {
  Endpoint endpoint = TRY(parse_endpoint(text, "DOCKER_HOST"));
  const auto folder = variable("DOCKER_CERT_PATH");
  if (folder || variable("DOCKER_TLS_VERIFY") || variable("DOCKER_TLS")) {
    const std::string own = docker_folder().value_or("/etc/docker");
    TRY_VOID(use_tls(endpoint, {folder.value_or(own), true, true}, names_no_port(text)));
  }
  return endpoint;
}

Result<Endpoint> docker_from_context(const std::string& name, const std::string& folder, const std::string& said_by) {
  const std::string from = "the docker context '" + name + "'", hash = sha256_hex(name);
  const std::string path = folder + "/contexts/meta/" + hash + "/meta.json";
  const auto meta = TRY(read_json(path));
  if (!meta)
    return usage(from + ", which " + said_by + " names, is not there: no " + path + " (cure: docker context ls)");
  const json::json_pointer place("/Endpoints/docker");
  if (!meta->contains(place) || !(*meta)[place].is_object()) return usage(path + ": it has no endpoint of Docker");
  const json& docker = (*meta)[place];
  const std::string text = TRY(text_at(docker, "Host", path));
  if (text.empty()) return usage(path + ": it has no \"Host\"");
  Endpoint endpoint = TRY(parse_endpoint(text, from));
  const std::string files = folder + "/contexts/tls/" + hash + "/docker";
  const bool skip = docker.value("SkipTLSVerify", json(false)) == true;
  if (skip || endpoint.transport == Endpoint::Transport::tls || TRY(sys::exists(sys::kHere, files)))
    TRY_VOID(use_tls(endpoint, {files, !skip, false}, names_no_port(text)));
  return endpoint;
}

Result<Endpoint> find_docker() {
  if (const auto text = variable("DOCKER_HOST")) return docker_from_environment(*text);
  if (const auto folder = docker_folder()) {
    std::string name = variable("DOCKER_CONTEXT").value_or(""), said_by = "DOCKER_CONTEXT";
    if (name.empty()) {
      said_by = *folder + "/config.json";
      if (const auto config = TRY(read_json(said_by))) name = TRY(text_at(*config, "currentContext", said_by));
    }
    if (!name.empty() && name != "default") return docker_from_context(name, *folder, said_by);
  }
  return parse_endpoint(std::string("unix://") + kDockerSocket, kByDefault);
}

Result<Endpoint> find_podman() {
  const auto text = variable("CONTAINER_HOST");
  if (!text) return parse_endpoint(std::string("unix://") + kPodmanSocket, kByDefault);
  Endpoint endpoint = TRY(parse_endpoint(*text, "CONTAINER_HOST"));
  if (endpoint.transport == Endpoint::Transport::ssh) endpoint.key_file = variable("CONTAINER_SSHKEY").value_or("");
  return endpoint;
}

}  // namespace

bool is_no_socket(const std::string& path) {
  const auto facts = sys::fstatat(sys::kHere, path, 0);
  return facts && !S_ISSOCK(facts->st_mode);
}

Result<Endpoint> find_endpoint(ApiKind kind) {
  Endpoint endpoint = TRY(kind == ApiKind::docker ? find_docker() : find_podman());
  if (endpoint.transport == Endpoint::Transport::ssh && endpoint.path.empty())
    endpoint.path = kind == ApiKind::docker ? kDockerSocket : kPodmanSocket;
  return endpoint;
}

}  // namespace benchsand
