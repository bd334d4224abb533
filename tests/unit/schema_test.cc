// docs/task.schema.json is for editors; the parser is the authority. Both must know the same keys.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "oci/limits.h"
#include "oci/task_spec.h"

using namespace benchsand;

namespace {

nlohmann::json schema() {
  std::ifstream in(std::string(BENCHSAND_SOURCE_DIR) + "/docs/task.schema.json");
  return nlohmann::json::parse(in);
}

// What the parser says of a task that has this further key.
std::string said_of(const std::string& line) {
  const auto task = parse_task_spec("benchsand: 1\n" + line + "\n", "t");
  return task ? "" : task.message();
}

}  // namespace

TEST_CASE("the schema has every key of a task, and no other") {
  const nlohmann::json document = schema();
  for (const auto& [key, value] : document["properties"].items()) {
    CAPTURE(key);
    if (key != "benchsand") CHECK(said_of(key + ": x").find("unknown key") == std::string::npos);
  }
  for (const char* key :
       {"name", "profile", "rootfs", "image", "command", "env", "workdir", "stdin", "inputs", "output", "limits"})
    CHECK(document["properties"].contains(key));
  CHECK(document["properties"].size() == 12);
  CHECK(document["oneOf"].dump() == R"([{"required":["rootfs"]},{"required":["image"]}])");
  CHECK(said_of("workdir: /x").find("key \"rootfs\" or \"image\" is missing") != std::string::npos);
  CHECK(said_of("nmae: x").find("unknown key") != std::string::npos);
  const std::string missing = said_of("workdir: /x");
  for (const std::string key : document["required"])
    if (key != "benchsand") CHECK(missing.find("key \"" + key + "\" is missing") != std::string::npos);
}

TEST_CASE("the schema has every limit with its meaning") {
  const nlohmann::json limits = schema()["properties"]["limits"]["properties"];
  CHECK(limits.size() == kLimitFields.size());
  for (const auto& field : kLimitFields) {
    CAPTURE(field.name);
    REQUIRE(limits.contains(field.name));
    CHECK(limits[std::string(field.name)]["description"] == field.meaning);
  }
}
