// The host before and after a run: oci/host_changes says whose doing a difference was.
#pragma once

#include <string>
#include <vector>

#include "oci/host_changes.h"
#include "shim/host_cgroup.h"
#include "shim/rootfs.h"
#include "shim/run_folder.h"

namespace benchsand {

class HostBaseline {
 public:
  explicit HostBaseline(const CgroupHost& host) : unified_(&host.unified()) {}

  // While the delegate starts, when benchsand would wait; nothing of the candidate runs yet. What cannot be read then is said
  // in the notices, which are worked out when the run has ended and before outputs are copied.
  void take(const Fd& results, const std::string& results_path, const RunFolder& folder, const Rootfs& rootfs,
            const std::vector<Input>& inputs);
  std::vector<std::string> notices(const RunShare& run) const;

  // A file system that the run or benchsand uses, by a descriptor on it. One that is known already is not taken twice.
  Result<void> watch(const Fd& fd, const std::string& path);
  Result<HostState> read() const;

 private:
  struct Watched {
    const Fd* fd;  // its owner outlives this
    std::string path;
    dev_t device;
  };
  Result<HostState> take_all(const Fd& results, const std::string& results_path, const RunFolder& folder,
                             const Rootfs& rootfs, const std::vector<Input>& inputs);
  const Hierarchy* unified_;
  Result<HostState> before_ = fault("it was not looked at");
  std::vector<Watched> file_systems_;
};

}  // namespace benchsand
