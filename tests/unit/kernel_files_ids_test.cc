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

TEST_CASE("the ids in /etc/passwd and /etc/group") {
  const auto firsts = [](const Result<std::vector<IdRange>>& ids) {
    std::vector<std::uint64_t> all;
    for (const auto& range : ids.value()) {
      CHECK(range.count == 1);
      all.push_back(range.first);
    }
    return all;
  };
  using Ids = std::vector<std::uint64_t>;
  const std::string passwd = "root:x:0:0:root:/:/bin/sh\n# who\n\nann:x:2013265920:2013265921:::\n";
  CHECK(firsts(parse_passwd_ids(passwd, "PASSWD")) == Ids{0, 0, 2013265920, 2013265921});
  CHECK(firsts(parse_group_ids("root:x:0:\nstaff:x:2013265922:ann,bob\n", "GROUP")) == Ids{0, 2013265922});
  CHECK(firsts(parse_passwd_ids("", "PASSWD")).empty());
  // NIS: without an id it gives none away; with one it does.
  CHECK(firsts(parse_passwd_ids("+::::::\n+\n-bob\n+@staff::::::\n+eve:x:7:8:::\n", "PASSWD")) == Ids{7, 8});
  CHECK(firsts(parse_group_ids("+:::\n-staff\n", "GROUP")).empty());
}

TEST_CASE("a passwd or group file that is not understood") {
  const auto passwd = [](const std::string& text) { return parse_passwd_ids(text, "PASSWD").error().message; };
  CHECK(passwd("ann:x:1\n") == "parse PASSWD: an id is due in the third field: 'ann:x:1'");
  CHECK(passwd("ann:x::1:::\n") == "parse PASSWD: '' is not a decimal number: 'ann:x::1:::'");
  CHECK(passwd("ann:x:1:-1:::\n") == "parse PASSWD: '-1' is not a decimal number: 'ann:x:1:-1:::'");
  CHECK(passwd(" +::::::\n") == "parse PASSWD: '' is not a decimal number: ' +::::::'");
  CHECK(passwd("ann:x:1:1:::") == "parse PASSWD: the last line is cut off");
  CHECK(parse_group_ids("staff:x\n", "GROUP").error().message ==
        "parse GROUP: an id is due in the third field: 'staff:x'");
}
