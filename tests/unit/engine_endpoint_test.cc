// Addresses of engines, as people write them.
#include "oci/engine_endpoint.h"

#include <doctest/doctest.h>

#include <tuple>

using namespace benchsand;
using Transport = Endpoint::Transport;

TEST_CASE("an address is taken apart, and written again") {
  const std::tuple<const char*, Transport, const char*, const char*, std::uint16_t, const char*, const char*> kCases[] =
      {{"unix:///run/docker.sock", Transport::unix_socket, "", "", 0, "/run/docker.sock", "unix:///run/docker.sock"},
       {"unix:///a b:c@d", Transport::unix_socket, "", "", 0, "/a b:c@d", "unix:///a b:c@d"},
       {"tcp://127.0.0.1:1234", Transport::tcp, "", "127.0.0.1", 1234, "", "tcp://127.0.0.1:1234"},
       {"tcp://engine", Transport::tcp, "", "engine", 2375, "", "tcp://engine:2375"},
       {"tcp://engine/", Transport::tcp, "", "engine", 2375, "", "tcp://engine:2375"},
       {"http://engine:80", Transport::tcp, "", "engine", 80, "", "tcp://engine:80"},
       {"tcp://[::1]:65535", Transport::tcp, "", "::1", 65535, "", "tcp://[::1]:65535"},
       {"tcp://[fe80::1%eth0]", Transport::tcp, "", "fe80::1%eth0", 2375, "", "tcp://[fe80::1%eth0]:2375"},
       {"https://engine", Transport::tls, "", "engine", 2376, "", "https://engine:2376"},
       {"ssh://host", Transport::ssh, "", "host", 0, "", "ssh://host"},
       {"ssh://me@host/", Transport::ssh, "me", "host", 0, "", "ssh://me@host"},
       {"ssh://me.x@host-1.lab:22/run/d.sock", Transport::ssh, "me.x", "host-1.lab", 22, "/run/d.sock",
        "ssh://me.x@host-1.lab:22/run/d.sock"}};
  for (const auto& [text, transport, user, host, port, path, again] : kCases) {
    CAPTURE(text);
    const auto endpoint = parse_endpoint(text, "DOCKER_HOST");
    if (!endpoint) FAIL(endpoint.error().message);
    CHECK(endpoint->transport == transport);
    CHECK(endpoint->user == user);
    CHECK(endpoint->host == host);
    CHECK(endpoint->port == port);
    CHECK(endpoint->path == path);
    CHECK(endpoint->text() == again);
    CHECK(endpoint->from == "DOCKER_HOST");
    CHECK(endpoint->verify);
    CHECK(endpoint->is_local() == (transport == Transport::unix_socket));
  }
}

TEST_CASE("what is no address is refused with the reason") {
  const std::string kLong = "unix:///" + std::string(107, 'a');
  const std::pair<std::string, std::string> kCases[] = {
      {"", "there is no scheme"},
      {"/run/docker.sock", "there is no scheme"},
      {"127.0.0.1:2375", "there is no scheme"},
      {"npipe:////./pipe/docker_engine", "the scheme \"npipe\" is not known here"},
      {"fd://", "the scheme \"fd\" is not known here"},
      {"UNIX:///run/docker.sock", "the scheme \"UNIX\" is not known here"},
      {"unix://run/docker.sock", "the path of a unix socket begins with /"},
      {"unix://", "the path of a unix socket begins with /"},
      {kLong, "the path of a unix socket has at most 107 bytes"},
      {"tcp://", "there is no host"},
      {"tcp://:2375", "there is no host"},
      {"tcp://a:0", "a port is a number from 1 to 65535"},
      {"tcp://a:65536", "a port is a number from 1 to 65535"},
      {"tcp://a:", "a port is a number from 1 to 65535"},
      {"tcp://a:22x", "a port is a number from 1 to 65535"},
      {"tcp://::1", "there is no host"},
      {"tcp://[::1", "the ] of an IPv6 address is missing"},
      {"tcp://[::1]2375", "text after the ] of an IPv6 address"},
      {"tcp://[]:2375", "there is no host"},
      {"tcp://a b", "a character that no host's name has"},
      {"tcp://a?b", "a character that no host's name has"},
      {"tcp://me@a", "a user is asked for with ssh:// only"},
      {"tcp://a/v1.41", "a path after the host, where the API has none"},
      {"https://a/v1.41", "a path after the host, where the API has none"},
      {"ssh://me:secret@a", "a password has no place in it, ssh takes keys"},
      {"ssh://@a", "a character that no user's name has"},
      {"ssh://-oProxyCommand=x", "a character that no host's name has"},
      {"ssh://-l@a", "a character that no user's name has"},
      {"ssh://me@", "there is no host"},
      {"ssh://a/%h", "a character that ssh would not leave as it is"},
      {"ssh://a/${HOME}/s", "a character that ssh would not leave as it is"},
      {"ssh://a/run:s", "a character that ssh would not leave as it is"}};
  for (const auto& [text, why] : kCases) {
    CAPTURE(text);
    const auto endpoint = parse_endpoint(text, "CONTAINER_HOST");
    REQUIRE_FALSE(endpoint);
    CHECK(endpoint.error().kind == Error::Kind::usage);
    CHECK(endpoint.error().message == "CONTAINER_HOST: \"" + text + "\" is no address of an engine: " + why +
                                          " (as in unix:///run/docker.sock, tcp://127.0.0.1:2375, ssh://user@host)");
  }
}
