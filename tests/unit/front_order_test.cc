// The order that a front end leaves for the runtime.
#include "oci/front_order.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace benchsand;
using nlohmann::json;

namespace {

FrontOrder order() {
  return {"r1", "docker", "/tasks/a.yaml", "aa", "strict", "bb", {{"limits.memory", "64MiB"}}, "/results", ""};
}

}  // namespace

TEST_CASE("an order is read as it was written") {
  const auto read = parse_front_order(front_order_json(order()), "ID.json");
  REQUIRE(read);
  CHECK(front_order_json(*read) == front_order_json(order()));
  CHECK(read->settings.size() == 1);
  CHECK(read->task_path == "/tasks/a.yaml");
}

TEST_CASE("an order that is not whole is an error") {
  const json whole = json::parse(front_order_json(order()));
  for (const auto& [key, value] : whole.items()) {
    CAPTURE(key);
    json without = whole, other = whole;
    without.erase(key);
    CHECK_FALSE(parse_front_order(without.dump(), "ID.json"));
    other[key] = 7.5;
    CHECK_FALSE(parse_front_order(other.dump(), "ID.json"));
  }
  json more = whole;
  more["more"] = "text";
  CHECK_FALSE(parse_front_order(more.dump(), "ID.json"));
  json pair = whole;
  pair["settings"] = {{"only one"}};
  CHECK(parse_front_order(pair.dump(), "ID.json").error().message ==
        "read the order ID.json: a setting is not a pair of texts");
  CHECK_FALSE(parse_front_order("{\"run\": \"a\", \"run\": \"b\"}", "ID.json"));
  CHECK_FALSE(parse_front_order("", "ID.json"));
}
