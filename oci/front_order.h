// What `benchsand run --engine docker|podman` leaves for the runtime that its engine will call: whose task the container is. The
// policy then comes from the task, as in a direct run, and from the engine only the root file system and the time to start.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/policy.h"
#include "oci/result.h"

namespace benchsand {

struct FrontOrder {
  std::string run_id;       // the run's name, in the labels of the container too
  std::string engine;       // docker or podman, and for messages only
  std::string task_path;    // absolute
  std::string task_sha256;  // a task that has changed since is another task
  std::string profile;      // a name, or an absolute path
  std::string profile_sha256;
  std::vector<Setting> settings;
  std::string results;  // DIR of --out, absolute
  std::string image;    // the digest of the task's image, which is unpacked; empty: the task has none
};

std::string front_order_json(const FrontOrder& order);
// Every key must be there and no other may be. The name is for messages.
Result<FrontOrder> parse_front_order(const std::string& text, const std::string& name);

}  // namespace benchsand
