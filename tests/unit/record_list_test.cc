#include "oci/record_list.h"

#include <doctest/doctest.h>

#include "sample_record.h"

using namespace benchsand;

TEST_CASE("records of containers as a list") {
  RunFacts run;
  run.created = "2026-11-30T13:44:37Z";
  run.container = ContainerFacts{"0123456789abcdef0123", "web", "/run/root", "/run/bundle", "docker"};
  const auto record = sample::record(nullptr, run);
  CHECK(record.at("container").at("name") == "web");
  CHECK(record.at("container").at("caller") == "docker");
  CHECK(digest_matches(record));
  const std::string list =
      record_list({record_line("0123456789abcdef0123", record), record_line("0123456789abcdef0123~2", "no object")});
  CHECK(list ==
        "CREATED               CONTAINER       NAME  PROFILE  VERDICT\n"
        "2026-11-30T13:44:37Z  0123456789ab    web   strict   SCORED succeeded\n"
        "?                     0123456789ab~2  ?     ?        no record of benchsand\n");
}

TEST_CASE("a run that is no container of an engine says so in its record") {
  CHECK(sample::record(nullptr).at("container") == nullptr);
}

TEST_CASE("a list of records takes any document, and shows no control character") {
  for (const char* text : {"{}", "[]", "1", R"({"created":1,"container":2,"profile":[],"verdict":{}})",
                           R"({"created":"\u001b[2J","container":{"name":"a\nb"},"verdict":{"scored":"true"}})"}) {
    const std::string list = record_list({record_line("x", nlohmann::json::parse(text))});
    CHECK(std::count(list.begin(), list.end(), '\n') == 2);
    CHECK(list.find('\033') == std::string::npos);
    CHECK(list.find("  SCORED") == std::string::npos);
  }
}
