// A policy as the body of an engine's create call: Docker's containers/create, and Podman's own (libpod).
//
// Whatever is asked for here is a request. With benchsand's runtime the policy comes from the order (oci/front_order.h) and this
// is what the engine shows its users; without it the engine's own runtime makes what it is asked for, and only what the host
// observes of that counts.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "oci/engine_endpoint.h"
#include "oci/policy.h"

namespace benchsand {

struct BodyPlaces {
  std::string name;     // of the container
  std::string image;    // as the engine knows it
  std::string runtime;  // as the engine knows it; empty: its default
  std::map<std::string, std::string> labels;
  // Without benchsand's runtime.
  struct Plain {
    std::string cgroup_parent;
    std::vector<std::string> command;                         // in place of the policy's: the gate, and then that
    std::vector<std::pair<std::string, std::string>> inputs;  // host source, target: read-only, and no other mount
    std::string output;                                       // host source of the policy's output
    std::string seccomp_file;                                 // for Podman, which takes no rules but by a file
    // Of a user of this host. Podman sets one in any case, and a number of its own is more than it may give on some hosts.
    std::uint64_t user_processes = 0;
  };
  std::optional<Plain> plain;
};

nlohmann::json create_body(ApiKind kind, const Policy& policy, const BodyPlaces& places);

// For every field of the policy, as the record names it: where it stands in config.json and in each body. A JSON pointer, or words
// in brackets for what no engine has a place for, and who sees to it then.
struct FieldPlace {
  const char *field, *config, *docker, *podman;
};
const std::vector<FieldPlace>& field_places();
std::string field_places_page();  // docs/engine-run.md

}  // namespace benchsand
