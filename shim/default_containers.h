// Containers as an engine makes them by itself: no runtime of benchsand's, no door, no ledger, no limit but the bounds that keep the
// host whole. Only the suite's own probe runs in one (docs/conformance.md).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shim/host_cgroup.h"

namespace benchsand {

struct DefaultOrder {
  std::vector<std::string> command;
  bool joins = false;                 // the network of the waiting container, not the engine's own
  std::vector<std::string> look_for;  // files of the container that may be there when it has ended
  std::uint64_t within_us = 0;        // then it is killed
};

// What is said of a container that has ended: by its engine, but for the last two.
struct DefaultEnd {
  std::string output;             // stdout
  std::uint64_t error_bytes = 0;  // of stderr, in the engine's log
  std::vector<std::string> found;
  bool out_of_memory = false;
  std::optional<std::uint64_t> written;  // bytes of its layer
  std::uint64_t wall_us = 0;
  bool in_time = true;
  std::optional<bool> populated;  // its cgroup, after the end; absent where the engine chooses its place itself
};

// The engine, over its API.
class DefaultEngine {
 public:
  struct Start {
    std::string run_id;  // by which gc finds it
    std::vector<std::string> command;
    std::string cgroup_parent;  // empty: the container itself has the bounds
    bool alone = false;         // without a network
    std::string joins;          // a container's id
  };
  virtual ~DefaultEngine() = default;
  virtual std::string version() const = 0;
  virtual std::string runtime() const = 0;                    // which makes its containers
  virtual bool takes_parent() const = 0;                      // a directory for a cgroup parent
  virtual std::string leaf(const std::string& id) const = 0;  // below such a parent
  virtual Result<std::string> start(const Start& start) = 0;  // the id
  virtual Result<pid_t> init(const std::string& id) = 0;
  virtual Result<bool> wait(const std::string& id, std::uint64_t within_us) = 0;  // false: it was killed
  virtual Result<DefaultEnd> end(const std::string& id, const std::vector<std::string>& look_for) = 0;
  virtual Result<void> remove(const std::string& run_id) = 0;  // one that is not there is fine
};

struct DefaultNetwork {
  std::string links, routes;  // of a container, as the host reads them: "eth0,lo"
};

// The host's side.
class DefaultContainers {
 public:
  static Result<DefaultContainers> of(std::unique_ptr<DefaultEngine> engine);
  DefaultContainers(DefaultContainers&&) noexcept;
  ~DefaultContainers();

  const DefaultEngine& engine() const { return *engine_; }
  Result<DefaultNetwork> look_at_network();  // starts a container, and takes it away again
  // A container without a network that waits for others to join it; its network namespace, which is not the host's.
  Result<Fd> wait_for_others();
  Result<DefaultEnd> run(const DefaultOrder& order);

 private:
  class One;
  DefaultContainers(std::unique_ptr<DefaultEngine> engine, CgroupHost cgroups);
  Result<std::unique_ptr<One>> start(DefaultEngine::Start start);

  std::unique_ptr<DefaultEngine> engine_;
  std::unique_ptr<const CgroupHost> cgroups_;  // held by containers while this moves
  std::unique_ptr<One> others_wait_;
};

}  // namespace benchsand
