#include "oci/engine_endpoint.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "oci/yaml_tree.h"

namespace benchsand {

namespace {

constexpr std::uint16_t kDockerPort = 2375, kDockerTlsPort = 2376;  // IANA's
constexpr std::size_t kLongestSocketPath = 107;                     // sun_path of sockaddr_un

struct Scheme {
  std::string_view name;
  Endpoint::Transport transport;
  std::uint16_t port;
};
constexpr Scheme kSchemes[] = {{"unix", Endpoint::Transport::unix_socket, 0},
                               {"tcp", Endpoint::Transport::tcp, kDockerPort},
                               {"http", Endpoint::Transport::tcp, kDockerPort},
                               {"https", Endpoint::Transport::tls, kDockerTlsPort},
                               {"ssh", Endpoint::Transport::ssh, 0}};

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// A name that begins with a dash would be an option of ssh.
bool is_name(const std::string& text, std::string_view also) {
  return !text.empty() && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_alnum(c) || also.contains(c); });
}

// What is wrong with it; empty: nothing.
std::string take_socket_path(std::string_view rest, Endpoint& endpoint) {
  endpoint.path = rest;
  if (!rest.starts_with('/')) return "the path of a unix socket begins with /";
  if (rest.size() > kLongestSocketPath)
    return "the path of a unix socket has at most " + std::to_string(kLongestSocketPath) + " bytes";
  if (rest.contains('\0')) return "a byte 0 in the path";
  return {};
}

std::string take_port(std::string_view digits, Endpoint& endpoint) {
  const auto [end, failed] = std::from_chars(digits.begin(), digits.end(), endpoint.port);
  if (failed != std::errc() || end != digits.end() || endpoint.port == 0) return "a port is a number from 1 to 65535";
  return {};
}

// HOST, HOST:PORT, [::1], [::1]:PORT.
std::string take_host(std::string_view rest, Endpoint& endpoint) {
  const bool bracket = rest.starts_with('[');
  const std::size_t end = bracket ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (end == rest.npos) return "the ] of an IPv6 address is missing";
  endpoint.host = rest.substr(bracket ? 1 : 0, bracket ? end - 1 : end);
  if (endpoint.host.empty()) return "there is no host";
  if (!is_name(endpoint.host, bracket ? ":.%" : ".-_")) return "a character that no host's name has";
  rest.remove_prefix(bracket ? end + 1 : end);
  if (rest.empty()) return {};
  return rest.front() == ':' ? take_port(rest.substr(1), endpoint) : "text after the ] of an IPv6 address";
}

std::string take_authority(std::string_view rest, Endpoint& endpoint) {
  const bool ssh = endpoint.transport == Endpoint::Transport::ssh;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view path = rest.substr(slash);
  rest = rest.substr(0, slash);
  if (const std::size_t at = rest.rfind('@'); at != rest.npos) {
    if (!ssh) return "a user is asked for with ssh:// only";
    endpoint.user = rest.substr(0, at);
    if (endpoint.user.contains(':')) return "a password has no place in it, ssh takes keys";
    if (!is_name(endpoint.user, ".-_")) return "a character that no user's name has";
    rest.remove_prefix(at + 1);
  }
  if (auto why = take_host(rest, endpoint); !why.empty()) return why;
  // ssh takes some for itself: it expands %h and ${HOME}, and a colon ends the path.
  if (ssh && path.size() > 1 && path.find_first_of("%$:\\[] ") != path.npos)
    return "a character that ssh would not leave as it is";
  if (ssh && path.size() > 1) return take_socket_path(path, endpoint);
  return path.size() > 1 ? "a path after the host, where the API has none" : "";
}

std::string take(const std::string& text, Endpoint& endpoint) {
  const std::size_t colon = text.find("://");
  if (colon == text.npos) return "there is no scheme";
  const std::string_view name = std::string_view(text).substr(0, colon),
                         rest = std::string_view(text).substr(colon + 3);
  for (const Scheme& scheme : kSchemes) {
    if (scheme.name != name) continue;
    endpoint.transport = scheme.transport;
    endpoint.port = scheme.port;
    return endpoint.is_local() ? take_socket_path(rest, endpoint) : take_authority(rest, endpoint);
  }
  return "the scheme " + in_quotes(name) + " is not known here";
}

std::string host_and_port(const Endpoint& endpoint) {
  const bool bracket = endpoint.host.contains(':');
  return (bracket ? "[" : "") + endpoint.host + (bracket ? "]" : "") +
         (endpoint.port == 0 ? "" : ":" + std::to_string(endpoint.port));
}

}  // namespace

const char* to_text(ApiKind kind) {
  switch (kind) {
    case ApiKind::docker:
      return "docker";
    case ApiKind::podman:
      return "podman";
  }
  return "";
}

std::string Endpoint::text() const {
  switch (transport) {
    case Transport::unix_socket:
      return "unix://" + path;
    case Transport::tcp:
      return "tcp://" + host_and_port(*this);
    case Transport::tls:
      return "https://" + host_and_port(*this);
    case Transport::ssh:
      return "ssh://" + (user.empty() ? "" : user + "@") + host_and_port(*this) + path;
  }
  return "";
}

Result<Endpoint> parse_endpoint(const std::string& text, const std::string& from) {
  Endpoint endpoint;
  endpoint.from = from;
  const std::string why = take(text, endpoint);
  if (why.empty()) return endpoint;
  return usage(from + ": " + in_quotes(text) + " is no address of an engine: " + why +
               " (as in unix:///run/docker.sock, tcp://127.0.0.1:2375, ssh://user@host)");
}

}  // namespace benchsand
