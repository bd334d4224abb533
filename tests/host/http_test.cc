// HTTP against an engine that misbehaves in every way that tests/engines/fake_engine.py knows.
#include "shim/http.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "fake_engine.h"

using namespace benchsand;
using nlohmann::json;
using support::FakeEngine;

namespace {

constexpr std::uint64_t kSoonUs = 300'000;

HttpRequest get(const std::string& target, std::uint64_t within_us = 10'000'000) {
  HttpRequest request;
  request.method = "GET";
  request.target = target;
  request.within_us = within_us;
  return request;
}

HttpRequest post(const std::string& target, const std::string& body = "") {
  HttpRequest request = get(target);
  request.method = "POST";
  request.body = body;
  return request;
}

template <class Answer>
std::string why(const Result<Answer>& answer) {
  REQUIRE_FALSE(answer);
  CHECK(answer.error().kind == Error::Kind::fault);
  return answer.error().message;
}

std::size_t inheritable_descriptors() {
  std::size_t count = 0;
  for (int fd = 3; fd < 200; ++fd)
    if (const int flags = ::fcntl(fd, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) == 0) ++count;
  return count;
}

// What a call of each misbehaviour comes to; the empty text is an answer.
const std::map<std::string, std::string> kFaults = {{"late", ""},
                                                    {"no_answer", "no answer within 300ms"},
                                                    {"closed", "it closes the connection without an answer"},
                                                    {"half_closed", "it closes the connection without an answer"},
                                                    {"broken_in_the_head", "the answer is cut off in its head"},
                                                    {"broken_after_the_length", "the answer is cut off in its head"},
                                                    {"reset", "the connection broke: Connection reset by peer"},
                                                    {"error_json", ""},
                                                    {"error_podman", ""},
                                                    {"error_text", ""},
                                                    {"error_empty", ""},
                                                    {"garbage", "the answer is not HTTP"},
                                                    {"not_even_a_head", "the answer is not HTTP"},
                                                    {"status_of_letters", "the answer is not HTTP"},
                                                    {"length_too_long", "the answer is cut off after 11 bytes"},
                                                    {"length_too_long_and_waits", "no answer within 300ms"},
                                                    {"length_too_short", ""},
                                                    {"length_negative", "the answer is not HTTP"},
                                                    {"no_length", "the answer does not say how long it is"},
                                                    {"huge", "the answer is larger than 16MiB"},
                                                    {"huge_chunked", "the answer is larger than 16MiB"},
                                                    {"endless_head", "the head of the answer is larger than 64KiB"},
                                                    {"endless_header", "the head of the answer is larger than 64KiB"},
                                                    {"endless_continue", "the head of the answer is larger than 64KiB"},
                                                    {"trickle", "no answer within 300ms"},
                                                    {"wrong_type", ""},
                                                    {"no_json", ""},
                                                    {"key_twice", ""},
                                                    {"chunk_cut", "the answer is cut off after 2 bytes"},
                                                    {"last_chunk_missing", "the answer is cut off after 2 bytes"},
                                                    {"chunk_garbage", "the answer is not HTTP"},
                                                    {"redirect", ""},
                                                    {"upgraded_unasked", "no answer within 300ms"},
                                                    {"stream_then_silence", "no answer within 300ms"}};

bool waits(const std::string& reason) {
  return reason.starts_with("no answer within");
}

void every_fault(Http& http, const std::string& where, bool tcp) {
  for (const auto& [name, reason] : kFaults) {
    if (name == "reset" && !tcp) continue;
    CAPTURE(name);
    const auto answer = http.call(get("/fault/" + name + "?after=0.01", waits(reason) ? kSoonUs : 10'000'000));
    if (reason.empty()) {
      if (!answer) FAIL(answer.error().message);
    } else {
      CHECK(why(answer) == "GET /fault/" + name + " at " + where + " (the test): " + reason);
    }
    // Nothing of it is left over for the next call.
    const auto next = http.call(get("/version"));
    if (!next) FAIL(next.error().message);
    CHECK(next->status == 200);
    CHECK(json::parse(next->body)["ApiVersion"] == "1.41");
  }
}

}  // namespace

TEST_CASE("each way to misbehave is a bounded fault of its own, and the next call is right") {
  for (const bool tcp : {false, true}) {
    const FakeEngine engine({}, tcp);
    const std::size_t before = support::open_descriptors(), inheritable = inheritable_descriptors();
    {
      Http http = engine.http();
      every_fault(http, engine.endpoint().text(), tcp);
      CHECK(inheritable_descriptors() == inheritable);
    }
    CHECK(support::open_descriptors() == before);
  }
}

TEST_CASE("the table of misbehaviours is that of the engine") {
  const std::string command = "python3 -c 'import sys; sys.path.insert(0, \"" BENCHSAND_SOURCE_DIR
                              "/tests/engines\"); import fake_engine; print(*fake_engine.FAULTS)'";
  FILE* pipe = ::popen(command.c_str(), "re");
  REQUIRE(pipe != nullptr);
  char word[64];
  std::size_t count = 0;
  while (::fscanf(pipe, "%63s", word) == 1) {
    CHECK_MESSAGE(kFaults.contains(word), word);
    ++count;
  }
  CHECK(::pclose(pipe) == 0);
  CHECK(count == kFaults.size());
}

TEST_CASE("an answer of any status is an answer, with its body and type") {
  const FakeEngine engine;
  Http http = engine.http();
  const auto error = http.call(get("/fault/error_text"));
  REQUIRE(error);
  CHECK(error->status == 500);
  CHECK(error->content_type == "text/html");
  CHECK(error->body == "<h1>oh\x1b[2J no</h1>\n");
  const auto redirect = http.call(get("/fault/redirect"));
  REQUIRE(redirect);
  CHECK(redirect->status == 302);
  HttpRequest request = get("/version");
  request.method = "HEAD";
  const auto head = http.call(request);
  REQUIRE(head);
  CHECK(head->status == 404);
  CHECK(head->body.empty());
}

TEST_CASE("a call says what it is told to say, and nothing of the environment") {
  // On TCP, where libcurl would ask a proxy.
  const FakeEngine engine({}, true);
  for (const char* name : {"http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"})
    REQUIRE(::setenv(name, "http://127.0.0.1:1", 1) == 0);
  Http http = engine.http();
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    HttpRequest request = post("/echo/../" + url_encoded("a b/c") + "?x=" + url_encoded("{\"y\": 1}"), "{}");
    request.method = method;
    const auto answer = http.call(request);
    if (!answer) FAIL(answer.error().message);
    const json said = json::parse(answer->body);
    CHECK(said["method"] == method);
    CHECK(said["target"] == request.target);
    CHECK(said["body"] == "{}");
    const json due = {{"host", engine.endpoint().text().substr(6)},
                      {"user-agent", "benchsand/" BENCHSAND_VERSION},
                      {"accept", "*/*"},
                      {"content-type", "application/json"},
                      {"content-length", "2"}};
    CHECK(said["headers"] == due);
  }
  const auto empty = http.call(post("/echo"));
  REQUIRE(empty);
  CHECK(json::parse(empty->body)["headers"]["content-length"] == "0");
  CHECK_FALSE(json::parse(empty->body)["headers"].contains("content-type"));
  for (const char* target : {"/a b", "/a\r\nX: y", "a", ""})
    CHECK(why(http.call(get(target))).ends_with("the target has a character that no address has"));
  for (const char* name : {"http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"}) ::unsetenv(name);
}

TEST_CASE("what changes something is sent once, however the connection ends") {
  const FakeEngine engine({"--fault", "closed@POST:/echo/once"});
  Http http = engine.http();
  REQUIRE(http.call(get("/version")));
  CHECK(why(http.call(post("/echo/once", "{}"))).ends_with("it closes the connection without an answer"));
  const auto calls = http.call(get("/calls"));
  REQUIRE(calls);
  CHECK(json::parse(calls->body) == json{"GET /version", "POST /echo/once", "GET /calls"});
}

TEST_CASE("a stream may take any time, but not be silent") {
  const FakeEngine engine;
  Http http = engine.http();
  const std::size_t inheritable = inheritable_descriptors();
  std::string text;
  const auto take = [&](std::string_view part) -> Result<void> {
    if (text.empty()) CHECK(inheritable_descriptors() == inheritable);
    text += part;
    return {};
  };
  const auto whole = http.download(get("/stream"), take);
  if (!whole) FAIL(whole.error().message);
  CHECK(whole->status == 200);
  CHECK(whole->body.empty());
  CHECK(text == std::string(1 << 20, 'x'));

  text.clear();
  CHECK(why(http.download(get("/fault/stream_then_silence", kSoonUs), take)).ends_with("nothing came for 300ms"));
  CHECK(text == "one two");

  // A byte every 20 ms, for longer than the silence that it may have.
  std::size_t came = 0;
  CHECK(why(http.download(get("/fault/trickle", 2'000'000), [&](std::string_view part) -> Result<void> {
          if ((came += part.size()) > 110) return fault("enough");
          return {};
        })).ends_with(": enough"));

  text.clear();
  const auto error = http.download(get("/fault/error_json"), take);
  REQUIRE(error);
  CHECK(error->status == 500);
  CHECK(error->body == R"({"message": "the disk is full."})");
  CHECK(text.empty());
  CHECK(why(http.download(get("/fault/last_chunk_missing"), take)).ends_with("the answer is cut off after 2 bytes"));
}

TEST_CASE("a body is sent as it comes, and a source that fails ends the call") {
  const FakeEngine engine;
  Http http = engine.http();
  std::size_t left = 3'000'000;
  const auto source = [&](char* buffer, std::size_t size) -> Result<std::size_t> {
    const std::size_t part = std::min({left, size, std::size_t{9999}});
    std::fill_n(buffer, part, 'x');
    left -= part;
    return part;
  };
  HttpRequest request = post("/upload");
  request.content_type = "application/x-tar";
  const auto answer = http.upload(request, source);
  if (!answer) FAIL(answer.error().message);
  CHECK(json::parse(answer->body) == json{{"bytes", 3'000'000}, {"coding", "chunked"}, {"type", "application/x-tar"}});

  const auto broken = [](char*, std::size_t) -> Result<std::size_t> { return fault("read x: Input/output error"); };
  CHECK(why(http.upload(request, broken)) ==
        "POST /upload at " + engine.endpoint().text() + " (the test): read x: Input/output error");
  const auto version = http.call(get("/version"));
  CHECK(version);
}

TEST_CASE("nobody at the other end: each reason, with its number") {
  const FakeEngine engine;
  const support::TempFolder folder;
  const auto reason = [](const std::string& address) {
    auto endpoint = parse_endpoint(address, "DOCKER_HOST");
    REQUIRE(endpoint);
    auto http = Http::to(*endpoint);
    REQUIRE(http);
    const auto answer = http->call(get("/version"));
    const std::string message = why(answer), start = "GET /version at " + address + " (DOCKER_HOST): ";
    CHECK(message.starts_with(start));
    return std::pair(message.substr(std::min(start.size(), message.size())), answer.error().error_number);
  };
  CHECK(reason("unix://" + folder.path("none")) == std::pair(std::string("there is no such socket"), ENOENT));
  CHECK(reason("unix://" + folder.write("file", "")) == std::pair(std::string("it is not a socket"), ENOTSOCK));
  CHECK(reason("unix://" + folder.path("file/below")) == std::pair(std::string("Not a directory"), ENOTDIR));
  CHECK(reason("tcp://127.0.0.1:1") == std::pair(std::string("nobody listens there"), ECONNREFUSED));
  CHECK(reason("tcp://a..b:1") == std::pair(std::string("the name of the host is not known"), 0));
  const Fd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder.path("dead").copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  CHECK(reason("unix://" + folder.path("dead")) == std::pair(std::string("nobody listens there"), ECONNREFUSED));
}

TEST_CASE("a connection becomes a stream, with what came with its head") {
  for (const bool tcp : {false, true}) {
    const FakeEngine engine({}, tcp);
    Http http = engine.http();
    const std::size_t before = support::open_descriptors();
    for (const char* target : {"/hijack/101", "/hijack/200"}) {
      CAPTURE(target);
      auto stream = http.hijack(post(target));
      if (!stream) FAIL(stream.error().message);
      CHECK(stream->content_type == "application/vnd.docker.raw-stream");
      REQUIRE(sys::write_all(stream->socket, "hello", "the stream"));
      REQUIRE(::shutdown(stream->socket.get(), SHUT_WR) == 0);
      std::string text = stream->begun;
      char buffer[64];
      for (ssize_t n = 1; n != 0;) {
        const auto ready = sys::poll_one(stream->socket, POLLIN, sys::monotonic_us() + 10'000'000);
        REQUIRE((ready && *ready != 0));
        n = ::read(stream->socket.get(), buffer, sizeof buffer);
        REQUIRE(n >= 0);
        text.append(buffer, static_cast<std::size_t>(n));
      }
      CHECK(text == "begun hello");
      CHECK((::fcntl(stream->socket.get(), F_GETFD) & FD_CLOEXEC) != 0);
    }
    CHECK(support::open_descriptors() == before);
  }
}

TEST_CASE("a connection that does not become a stream is an error in the engine's words") {
  const std::map<std::string, std::string> kReasons = {{"404", "the engine says: No such container: x (404)"},
                                                       {"document", "the answer is a document, not a stream"},
                                                       {"closed", "it closes the connection without an answer"},
                                                       {"broken_in_the_head", "the answer is cut off in its head"},
                                                       {"garbage", "the answer is not HTTP"},
                                                       {"endless_head", "the head of the answer is larger than 64KiB"},
                                                       {"error_text", "the engine says: <h1>oh\\x1b[2J no</h1> (500)"},
                                                       {"no_answer", "no answer within 300ms"},
                                                       {"length_too_long", "the answer is a document, not a stream"}};
  const FakeEngine engine;
  Http http = engine.http();
  const std::size_t before = support::open_descriptors();
  for (const auto& [name, reason] : kReasons) {
    CAPTURE(name);
    HttpRequest request = post("/hijack/" + name);
    if (waits(reason)) request.within_us = kSoonUs;
    CHECK(why(http.hijack(request)) ==
          "POST /hijack/" + name + " at " + engine.endpoint().text() + " (the test): " + reason);
  }
  CHECK(support::open_descriptors() == before);
}

TEST_CASE("whoever waits for an engine can be told to stop") {
  const FakeEngine engine;
  Http http = engine.http();
  const auto told = sys::pipe();
  REQUIRE(told);
  http.stop_at(told->read);
  REQUIRE(http.call(get("/version")));
  REQUIRE(sys::write_all(told->write, "x", "a pipe"));
  const std::string start = " at " + engine.endpoint().text() + " (the test): ";
  const auto called = http.call(get("/fault/no_answer"));
  CHECK(why(called) == "GET /fault/no_answer" + start + "benchsand was told to stop");
  CHECK(called.error().error_number == ECANCELED);
  const auto hijacked = http.hijack(post("/hijack/no_answer"));
  CHECK(why(hijacked) == "POST /hijack/no_answer" + start + "benchsand was told to stop");
  CHECK(hijacked.error().error_number == ECANCELED);
}
