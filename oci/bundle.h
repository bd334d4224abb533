// Policy -> config.json of an OCI bundle. Byte-stable: the same arguments give the same text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "oci/policy.h"

namespace benchsand {

// Where this one run lives on the host; everything else comes from the policy.
struct BundlePlaces {
  std::string rootfs;                    // directory
  std::string output;                    // mount point of the output tmpfs
  std::string cgroups_path;              // "/benchsand/ID/ct"; empty: the delegate chooses (`benchsand bundle`)
  std::string listener;                  // unix socket that receives the seccomp fd; empty: none (`benchsand bundle`)
  bool swap_file_exists = true;          // v2: memory.swap.max exists in the outer cgroup
  std::vector<std::string> inputs = {};  // where each input of the policy is; empty: at its own source
  std::string user_namespace =
      {};                    // where the run's own is mounted, to be joined; empty: the host's (`benchsand bundle`)
  std::string devices = {};  // where the run's own /dev is; empty: the delegate makes one
  bool limits_at_the_door = false;     // benchsand sets the rlimits itself, see shim/user_namespace.h
  std::string network_namespace = {};  // Relaxation::network_namespace: where that is mounted
};

struct ProcessLimit {
  const char* type;  // "RLIMIT_NOFILE"
  std::uint64_t value;
};
// The rlimits of the candidate's first process, soft and hard alike.
std::vector<ProcessLimit> process_limits(const Policy& policy);

std::string render_bundle(const Policy& policy, const HostFacts& host, const BundlePlaces& places);
// The same before it is text, and its `linux.resources` alone.
nlohmann::json bundle_json(const Policy& policy, const HostFacts& host, const BundlePlaces& places);
nlohmann::json resources_json(const Policy& policy, const HostFacts& host, const BundlePlaces& places);

}  // namespace benchsand
