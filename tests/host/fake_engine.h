// A process of tests/engines/fake_engine.py, which ends with the test.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "shim/http.h"
#include "support.h"

namespace benchsand::support {

class FakeEngine {
 public:
  explicit FakeEngine(std::vector<std::string> more = {}, bool tcp = false) {
    std::vector<std::string> words = {"python3", BENCHSAND_SOURCE_DIR "/tests/engines/fake_engine.py",
                                      tcp ? "--port" : "--socket", tcp ? "0" : socket()};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    auto in = sys::pipe(), out = sys::pipe();
    REQUIRE((in && out));
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::dup2(in->read.get(), 0);
      ::dup2(out->write.get(), 1);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    input_ = std::move(in->write);
    out->write.reset();
    std::string text;
    for (char c = 0; c != '\n'; text += c) REQUIRE(::read(out->read.get(), &c, 1) == 1);
    endpoint_ = tcp ? "tcp://127.0.0.1:" + text.substr(6, text.size() - 7) : "unix://" + socket();
  }
  ~FakeEngine() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  std::string socket() const { return folder_.path("s"); }
  const TempFolder& folder() const { return folder_; }
  Endpoint endpoint() const {
    auto endpoint = parse_endpoint(endpoint_, "the test");
    REQUIRE(endpoint);
    return *endpoint;
  }
  Http http() const {
    auto http = Http::to(endpoint());
    if (!http) FAIL(http.error().message);
    return std::move(*http);
  }

 private:
  TempFolder folder_;
  pid_t pid_ = -1;
  Fd input_;
  std::string endpoint_;
};

}  // namespace benchsand::support
