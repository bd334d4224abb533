// Which ids a user namespace has, and which are somebody's.
#include <doctest/doctest.h>

#include "oci/kernel_files.h"

using namespace benchsand;

namespace {

std::string map_error(const std::string& text) {
  const auto map = parse_id_map(text, "MAP");
  return map ? "no error" : map.error().message;
}

std::string range_error(const std::string& text) {
  const auto ranges = parse_subordinate_ids(text, "SUBUID");
  return ranges ? "no error" : ranges.error().message;
}

}  // namespace

TEST_CASE("the lines of uid_map") {
  const auto map = parse_id_map("         0 1879048192          1\n     65534 1879048193          1\n", "MAP");
  REQUIRE(map.has_value());
  REQUIRE(map->size() == 2);
  CHECK((*map)[0].inside == 0);
  CHECK((*map)[0].outside == 1879048192);
  CHECK((*map)[1].inside == 65534);
  CHECK((*map)[1].outside == 1879048193);
  CHECK((*map)[1].count == 1);
  CHECK(parse_id_map("         0          0 4294967295\n", "MAP")->front().count == 4294967295);
  CHECK(parse_id_map("", "MAP")->empty());  // a namespace that nothing is mapped in
}

TEST_CASE("a uid_map that is not understood") {
  CHECK(map_error("0 1 1") == "parse MAP: the last line is cut off");
  CHECK(map_error("0 1\n") == "parse MAP: three numbers are due: '0 1'");
  CHECK(map_error("0 1 1 1\n") == "parse MAP: three numbers are due: '0 1 1 1'");
  CHECK(map_error("0 -1 1\n") == "parse MAP: '-1' is not a decimal number: '0 -1 1'");
  CHECK(map_error("0 1 1\n\n") == "parse MAP: three numbers are due: ''");
}

TEST_CASE("the lines of /etc/subuid") {
  const auto ranges = parse_subordinate_ids("# who\nalice:100000:65536\n\n 1000:1879048192:2\n", "SUBUID");
  REQUIRE(ranges.has_value());
  REQUIRE(ranges->size() == 2);
  CHECK((*ranges)[0].first == 100000);
  CHECK((*ranges)[0].count == 65536);
  CHECK((*ranges)[1].first == 1879048192);
  CHECK(parse_subordinate_ids("", "SUBUID")->empty());
  CHECK(range_error("alice:100000\n") == "parse SUBUID: 'NAME:FIRST:COUNT' is due: 'alice:100000'");
  CHECK(range_error("alice:100000:many\n") == "parse SUBUID: 'many' is not a decimal number: 'alice:100000:many'");
}
