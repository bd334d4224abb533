#include "oci/processor_list.h"

#include <doctest/doctest.h>

using namespace benchsand;

TEST_CASE("a list of processors gets the kernel's own form") {
  const auto form = [](const std::string& text) {
    const auto list = parse_processor_list(text);
    return list ? list->text + " (" + std::to_string(list->count) + ")" : "refused";
  };
  CHECK(form("0") == "0 (1)");
  CHECK(form("0-3") == "0-3 (4)");
  CHECK(form("3-3") == "3 (1)");
  CHECK(form("0,1") == "0-1 (2)");
  CHECK(form("4,0-1,1") == "0-1,4 (3)");
  CHECK(form("8191") == "8191 (1)");
  for (const char* text : {"",
                           ",",
                           "0,",
                           ",0",
                           "-1",
                           "0-",
                           "1-0",
                           "0--1",
                           "0-1-2",
                           "a",
                           "0x1",
                           " 0",
                           "0 ",
                           "0, 1",
                           "8192",
                           "0-8192",
                           "99999999999999999999",
                           "1.5",
                           "all",
                           "max"}) {
    CAPTURE(text);
    CHECK(form(text) == "refused");
  }
}
