// The containers that engines made with benchsand-runtime: an engine's (root, id) -> the run that is behind it.
//
//   /run/benchsand/containers/KEY/state.json      KEY: the first half of sha256(root NUL id)
//
// A container is claimed by giving its directory its name, which the kernel lets one process do.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kContainerBase = "/run/benchsand/containers";
inline constexpr const char* kDefaultRoot =
    "/run/benchsand/default-root";  // when a caller gives no --root: a key, no place

struct ContainerState {
  std::string root, id;     // the engine's
  std::string run_id;       // the delegate's id, and the name of folder, cgroup and record
  std::string bundle;       // the engine's, absolute
  std::string rootfs;       // as the engine mounted it, absolute
  std::string delegate;     // crun or runc
  std::string profile;      // its name
  std::string oci_version;  // of the engine's config.json
  std::string created;      // RFC 3339
  pid_t pid = 0;            // of init; 0: not made yet
  std::uint64_t pid_start_time = 0;
  pid_t monitor = 0;
  std::uint64_t monitor_start_time = 0;
  nlohmann::json annotations = nlohmann::json::object();
};

// Where the record lies that is kept should the monitor write none. It outlives the run's folder.
std::string unfinished_record_of(const ContainerState& state);

// Without "//", "." and a '/' at the end, so that one directory is one key; kDefaultRoot for none.
std::string canonical_root(const std::string& root);

// An error ("already exists") when the id is taken.
Result<void> claim_container(const ContainerState& state);
Result<std::optional<ContainerState>> find_container(const std::string& root, const std::string& id);
Result<ContainerState> require_container(const std::string& root, const std::string& id);  // or unknown_container()
Result<void> update_container(const ContainerState& state);
Result<void> remove_container(const std::string& root, const std::string& id);  // absent is fine
Result<std::vector<ContainerState>> list_containers(const std::string& root);
Result<std::vector<ContainerState>> all_containers();  // for gc
// What calls left that were killed while they claimed or removed one; how many. No container has been behind them.
Result<std::uint64_t> remove_temporary_containers();

// In clock ticks since boot, as /proc/PID/stat has it: with the number, it names one process for good.
Result<std::uint64_t> start_time_of(pid_t pid);
// Returns when the monitor has ended, and so has written what there is to record.
Result<void> wait_for_monitor(const ContainerState& state, std::uint64_t deadline_us);

enum class ContainerStatus { created, running, paused, stopped };
std::string container_status_text(ContainerStatus status);
// Computed from the kernel each time: nothing that was written down can be stale.
Result<ContainerStatus> container_status(const ContainerState& state);

}  // namespace benchsand
