// What engines answer: their errors, and their versions.
#include "oci/engine_answer.h"

#include <doctest/doctest.h>

#include "oci/http_head.h"

using namespace benchsand;
using nlohmann::json;

TEST_CASE("an error is told in the engine's own words, on one line") {
  const std::pair<std::string, std::string> kCases[] = {
      {R"({"message": "No such image: x."})", "No such image: x"},
      {R"({"cause": "no such container", "message": "no container \"x\": no such container", "response": 404})",
       "no container \"x\": no such container"},
      {R"({"cause": "no such container", "message": "looking up", "response": 404})", "looking up: no such container"},
      {R"({"cause": "no such container", "message": ""})", "no such container"},
      {R"({"message": 5})", R"({"message": 5})"},
      {R"({"message": "a)", R"({"message": "a)"},
      {R"(["a"])", R"(["a"])"},
      {"page not found\n", "page not found"},
      {"a\x1b[2Jb\nc", "a\\x1b[2Jb\\x0ac"},
      {" \n", "nothing"},
      {"", "nothing"}};
  for (const auto& [body, words] : kCases) CHECK(engine_words(body) == words);
  CHECK(engine_words(std::string(600, 'x')) == std::string(600, 'x'));
  CHECK(engine_words(std::string(599, 'x') + "öö") == std::string(599, 'x') + "…");
}

namespace {

json docker(const std::string& oldest, const std::string& newest) {
  return {{"Version", "20.10.24"}, {"ApiVersion", newest}, {"MinAPIVersion", oldest}};
}

json podman(const std::string& oldest, const std::string& newest) {
  return {{"Version", "4.3.1"},
          {"ApiVersion", "1.41"},
          {"Components",
           {{{"Name", "Conmon"}},
            {{"Name", "Podman Engine"},
             {"Version", "4.3.1"},
             {"Details", {{"APIVersion", newest}, {"MinAPIVersion", oldest}}}}}}};
}

std::string agreed(ApiKind kind, const json& answer) {
  const auto version = agree_on_version(kind, answer, "unix:///s (the default)");
  return version ? version->engine + " by " + version->api : version.error().message;
}

}  // namespace

TEST_CASE("the newest version that both sides know is agreed on") {
  CHECK(agreed(ApiKind::docker, docker("1.12", "1.41")) == "20.10.24 by 1.41");
  CHECK(agreed(ApiKind::docker, docker("1.24", "1.43")) == "20.10.24 by 1.43");
  CHECK(agreed(ApiKind::docker, docker("1.44", "1.99")) == std::string("20.10.24 by ") + kNewestDockerApi);
  CHECK(agreed(ApiKind::docker, docker("1.41", "2.0")) == std::string("20.10.24 by ") + kNewestDockerApi);
  CHECK(agreed(ApiKind::docker, docker("", "1.41")) == "20.10.24 by 1.41");
  CHECK(agreed(ApiKind::podman, podman("4.0.0", "4.3.1")) == "4.3.1 by 4.3.1");
  CHECK(agreed(ApiKind::podman, podman("3.1.0", "4.9.4-rhel")) == "4.3.1 by 4.9.4");
  CHECK(agreed(ApiKind::podman, podman("4.0.0", "5.4.0")) == "4.3.1 by 5.4.0");
}

TEST_CASE("no version of both sides, or no version at all, is an error that says so") {
  const std::string ours = std::string("benchsand 1.41 to ") + kNewestDockerApi;
  CHECK(agreed(ApiKind::docker, docker("1.12", "1.40")) ==
        "docker 20.10.24 at unix:///s (the default) speaks the API versions 1.12 to 1.40, " + ours +
            " (cure: Docker 20.10 or newer)");
  CHECK(agreed(ApiKind::docker, docker("1.99", "1.100")) ==
        "docker 20.10.24 at unix:///s (the default) speaks the API versions 1.99 to 1.100, " + ours +
            " (cure: a newer benchsand)");
  CHECK(agreed(ApiKind::podman, podman("3.0.0", "3.4.4")) ==
        "podman 4.3.1 at unix:///s (the default) speaks the API versions 3.0.0 to 3.4.4, benchsand 4.0.0 "
        "(cure: Podman 4 or newer)");
  CHECK(agreed(ApiKind::podman, podman("5.0.0", "6.0.0")) ==
        "podman 4.3.1 at unix:///s (the default) speaks the API versions 5.0.0 to 6.0.0, benchsand 4.0.0 "
        "(cure: a newer benchsand)");
  CHECK(agreed(ApiKind::docker, podman("4.0.0", "4.3.1")) ==
        "unix:///s (the default) is Podman's API in Docker's manner, which has no place for a runtime "
        "(cure: --engine podman)");
  for (const json& answer :
       {json(), json::array(), json{{"Version", "1"}}, json{{"ApiVersion", "1.41"}}, docker("1.12", "1.4x"),
        docker("1.12", "-1"), docker("x", "1.41"), json{{"Version", 20}, {"ApiVersion", "1.41"}}}) {
    CHECK(agreed(ApiKind::docker, answer) ==
          "ask unix:///s (the default) for its version: the answer is not that of docker");
    CHECK(agreed(ApiKind::podman, answer) ==
          "ask unix:///s (the default) for its version: the answer is not that of podman");
  }
  // What goes into the path of every call is made of numbers alone.
  CHECK(agreed(ApiKind::docker, docker("1.12", "1.41-/../x")) == "20.10.24 by 1.41");
}

TEST_CASE("the head of an answer: whole, not yet whole, or none") {
  const std::string text =
      "HTTP/1.1 101 UPGRADED\r\ncontent-TYPE:  application/vnd.docker.raw-stream \r\nUpgrade: tcp\r\n\r\nstream";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const auto head = parse_http_head(text.substr(0, size));
    REQUIRE(head);
    CHECK(head->has_value() == (size + 6 >= text.size()));
  }
  const auto head = parse_http_head(text);
  CHECK((*head)->status == 101);
  CHECK((*head)->size == text.size() - 6);
  CHECK((*head)->content_type == "application/vnd.docker.raw-stream");
  CHECK_FALSE((*head)->content_length);
  CHECK_FALSE((*head)->chunked);
  const auto other = parse_http_head("HTTP/1.0 404\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n");
  REQUIRE(other);
  CHECK((*other)->status == 404);
  CHECK((*other)->content_length == 12);
  CHECK((*other)->chunked);
  for (const char* bad : {"SSH-2.0\r\n", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n",
                          "HTTP/1.1 2000 X\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
                          "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    CAPTURE(bad);
    const auto answer = parse_http_head(bad);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().message == "the answer is not HTTP");
  }
  const auto large = parse_http_head("HTTP/1.1 200 OK\r\nX: " + std::string(kLargestHttpHead, 'x') + "\r\n\r\n");
  REQUIRE_FALSE(large);
  CHECK(large.error().message == "the head of the answer is larger than 64KiB");
}

TEST_CASE("a part of a target is percent-encoded, to the byte") {
  CHECK(url_encoded("aZ09-._~") == "aZ09-._~");
  CHECK(url_encoded(std::string("a/b?c=d&e %+\0\n\xc3\xb6", 16)) == "a%2Fb%3Fc%3Dd%26e%20%25%2B%00%0A%C3%B6");
}
