#include "oci/runtime_error.h"

#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "oci/runtime_settings.h"
#include "oci/signal_name.h"

using namespace benchsand;

TEST_CASE("an error for --log is one JSON object in one line") {
  for (const std::string message : {"plain", "with \"quotes\"\nand a line", "not \xff UTF-8", ""}) {
    const std::string line = runtime_error_line(message, "2026-01-02T03:04:05Z");
    CHECK(line.find('\n') == line.size() - 1);
    const auto object = nlohmann::json::parse(line);
    CHECK(object.size() == 3);
    CHECK(object.at("level") == "error");
    CHECK(object.at("msg").is_string());
    CHECK(object.at("time") == "2026-01-02T03:04:05Z");
  }
}

TEST_CASE("no phrase that a caller makes an exit code of is said by accident") {
  const std::vector<std::string> forms = {"%", "open /a: %", "% (%)", "a%b", "x %: %"};
  for (const auto phrase : caller_phrases()) {
    for (const auto& form : forms) {
      for (const bool upper : {false, true}) {
        std::string message;
        for (const char c : form) {
          if (c != '%')
            message += c;
          else
            for (const char letter : phrase) message += static_cast<char>(upper ? std::toupper(letter) : letter);
        }
        CAPTURE(message);
        CHECK(has_caller_phrase(message));
        CHECK_FALSE(has_caller_phrase(neutral_wording(message)));
        // Said on purpose it stays, letter by letter.
        CHECK(neutral_wording("a: " + meant(message)) == "a: " + message);
      }
    }
  }
}

TEST_CASE("the errors of the kernel have no such phrase") {
  for (int number = 1; number < 134; ++number) {
    const std::string message = std::string("open /x: ") + std::strerror(number);
    CAPTURE(message);
    CHECK_FALSE(has_caller_phrase(neutral_wording(message)));
  }
  CHECK(neutral_wording("open /x: Permission denied") == "open /x: access was refused");
  CHECK(neutral_wording("two\nlines\x1b[1m") == "two lines [1m");
}

TEST_CASE("what callers wait for is said") {
  CHECK(neutral_wording(unknown_container("c1")) == "container c1 does not exist");
  CHECK(neutral_wording(container_not_running("c1")) == "container c1: container not running");
  // docker exec ends with 127 by these words, and with 126 by the last.
  for (const std::string said :
       {"executable file `nope` not found in $PATH: no such file or directory",
        "runc create failed: unable to start container process: exec: \"/nope\": stat /nope: no such file or directory",
        "exec: \"nope\": executable file not found in $PATH", "open executable: Permission denied"})
    CHECK(neutral_wording("crun: " + delegate_words(said + "\n")) == "crun: " + said);
  CHECK(neutral_wording(delegate_words("executable file `nope` not found in $PATH: No such file or directory")) ==
        "executable file `nope` not found in $PATH: no such file or directory");
  CHECK(neutral_wording(delegate_words("mount `proc`: Operation not permitted\n")) ==
        "mount `proc`: the kernel refused it");
}

TEST_CASE("what a delegate says of the candidate's program has a cure, in words that no caller looks for") {
  CHECK(is_of_the_program("executable file `nope` not found in $PATH: No such file or directory"));
  CHECK(is_of_the_program(
      "runc run failed: unable to start container process: exec: \"nope\": executable file not found"));
  CHECK_FALSE(is_of_the_program("mount `proc`: Operation not permitted"));
  const std::string cure = program_cure({"HOME=/output", "PATH=/bin:/usr/bin", "XPATH=/x"});
  CHECK(cure ==
        " (cure: the program of the command has to be in the root file system, for anybody to execute; one without a "
        "slash is looked for along PATH=/bin:/usr/bin)");
  CHECK_FALSE(has_caller_phrase(cure));
}

TEST_CASE("where the caller looks for the reason is found in a command line that is refused, too") {
  const auto place = [](std::vector<std::string> words) { return log_place(words); };
  CHECK(place({"--root", "/r", "--log", "/l", "--log-format", "json", "frob"}).path == "/l");
  CHECK(place({"--root", "/r", "--log", "/l", "--log-format", "json", "frob"}).json);
  CHECK(place({"--log=/l", "--log-format=json", "--frob"}).json);
  CHECK(place({"--log", "file:/l", "state"}).path == "/l");
  CHECK(place({"--log", "journald:x", "state"}).path.empty());
  CHECK_FALSE(place({"--log", "/l", "state"}).json);
  // After the verb it is no flag of ours.
  CHECK(place({"exec", "c", "prog", "--log", "/l"}).path.empty());
  CHECK(place({"--log"}).path.empty());
}

TEST_CASE("signals by name and number") {
  struct Row {
    const char* text;
    int number;
  };
  const Row rows[] = {{"9", 9},      {"KILL", 9},        {"SIGKILL", 9}, {"sigterm", 15}, {"TERM", 15},
                      {"64", 64},    {"SIGSYS", 31},     {"HUP", 1},     {"RTMIN", 34},   {"RTMIN+3", 37},
                      {"RTMAX", 64}, {"SIGRTMAX-1", 63}, {"POLL", 29},   {"IOT", 6}};
  for (const auto& row : rows) {
    CAPTURE(row.text);
    const auto signal = parse_signal(row.text);
    REQUIRE(signal.has_value());
    CHECK(*signal == row.number);
  }
  for (const char* text : {"", "0", "65", "-9", "9x", " 9", "SIG", "SIGNOPE", "99999999999", "RTMIN+31", "RTMAX-99"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_signal(text).has_value());
  }
}

TEST_CASE("a program's name is its profile") {
  CHECK(*profile_of_program("benchsand-runtime") == "strict");
  CHECK(*profile_of_program("/usr/bin/benchsand") == "strict");
  CHECK(*profile_of_program("/usr/bin/benchsand-python") == "python");
  CHECK(*profile_of_program("./benchsand-passthrough") == kPassthrough);
  for (const char* name : {"", "crun", "benchsand-", "benchsand-..", "benchsand--x", "benchsand-a b", "/benchsand/"}) {
    CAPTURE(name);
    CHECK_FALSE(profile_of_program(name).has_value());
  }
}

TEST_CASE("the settings of benchsand-runtime") {
  CHECK_FALSE(parse_runtime_settings("", "f")->delegate.has_value());
  CHECK(*parse_runtime_settings("delegate: runc\n", "f")->delegate == "runc");
  CHECK(parse_runtime_settings("delegate: youki\n", "f")
            .error()
            .message.find("f:1:11: error: delegate: crun or runc is due, not \"youki\"") == 0);
  CHECK(parse_runtime_settings("deligate: runc\n", "f").error().message.find("did you mean \"delegate\"?") !=
        std::string::npos);
}
