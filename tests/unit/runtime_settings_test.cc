#include "oci/runtime_settings.h"

#include <doctest/doctest.h>

using namespace benchsand;

namespace {

std::string refused(const std::string& text) {
  const auto settings = parse_runtime_settings(text, "runtime.yaml");
  return settings ? "accepted" : settings.error().message;
}

}  // namespace

TEST_CASE("runtime.yaml: what is left out is the default") {
  for (const char* text : {"", "# nothing\n", "delegate: crun\n", "records: {}\n"}) {
    const auto settings = parse_runtime_settings(text, "runtime.yaml");
    REQUIRE(settings);
    CHECK(settings->keep.records == 1000);
    CHECK(settings->keep.days == 90);
  }
  const auto none = parse_runtime_settings("", "runtime.yaml");
  CHECK_FALSE(none->delegate);
  const auto all = parse_runtime_settings("delegate: runc\nrecords: {keep: 20, days: 7}\n", "runtime.yaml");
  REQUIRE(all);
  CHECK(all->delegate == "runc");
  CHECK(all->keep.records == 20);
  CHECK(all->keep.days == 7);
}

TEST_CASE("runtime.yaml: what cannot be meant is refused with its place") {
  CHECK(refused("delegate: youki\n") ==
        "runtime.yaml:1:11: error: delegate: crun or runc is due, not \"youki\"\n  delegate: youki\n            ^");
  CHECK(refused("records: {keep: 0}\n") ==
        "runtime.yaml:1:17: error: records.keep: not between 1 and 1000000\n  records: {keep: 0}\n                  ^");
  CHECK(refused("records: {days: 40000}\n").find("records.days: not between 1 and 36500") != std::string::npos);
  CHECK(refused("records: {days: -1}\n").find("records.days: ") != std::string::npos);
  CHECK(refused("records: {day: 1}\n").find("did you mean \"days\"?") != std::string::npos);
  CHECK(refused("records: many\n").find("runtime.yaml:1:10: error: records") != std::string::npos);
  CHECK(refused("recrods: {}\n").find("did you mean \"records\"?") != std::string::npos);
  CHECK(refused("- crun\n") != "accepted");
}
