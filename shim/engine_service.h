// A Podman service of our own, for one run: in Podman the runtime is the service's, and a container's body cannot name another
// (4.3 reads `oci_runtime` and does not use it). It works on the same store as every other Podman of root's.
#pragma once

#include <string>
#include <vector>

#include "shim/engine_client.h"

namespace benchsand {

class PodmanService {
 public:
  // Returns when it can be called. The socket and what the service says are `base`/RUN.podman and beside it; both go with it, and
  // it ends with this process.
  static Result<PodmanService> start(const std::string& base, const std::string& run, const std::string& runtime);
  PodmanService(PodmanService&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), place_(std::exchange(other.place_, "")), lock_(std::move(other.lock_)) {}
  PodmanService& operator=(PodmanService&&) = delete;
  ~PodmanService();
  Endpoint endpoint() const;

 private:
  PodmanService(pid_t pid, std::string place, Fd lock) : pid_(pid), place_(std::move(place)), lock_(std::move(lock)) {}
  pid_t pid_;
  std::string place_;
  Fd lock_;  // the living from the dead
};

// Runs whose service has left its files in `base`, because the benchsand of it was killed. The locks are held until forgotten.
struct DeadPodmanService {
  std::string run;
  Fd lock;
};
Result<std::vector<DeadPodmanService>> dead_podman_services(const std::string& base);
void forget_podman_service(const std::string& base, const std::string& run);

// benchsand-runtime of this installation. Kind fault when it is not there.
Result<std::string> our_runtime();

}  // namespace benchsand
