// The cgroup of a running container, opened by the name of its run, for the calls that look at it or stop it for a while.
#pragma once

#include <set>
#include <string>

#include "shim/host_cgroup.h"

namespace benchsand {

class ContainerCgroup {
 public:
  static Result<ContainerCgroup> open(const std::string& run_id);

  CgroupLayout layout() const { return host_.layout(); }
  // A file of the leaf in the hierarchy that has this controller; "" is the cgroup2 tree.
  Result<std::string> read(const std::string& controller, const std::string& file) const;
  std::string name(const std::string& controller, const std::string& file) const;
  Result<std::set<pid_t>> processes() const;
  // cgroup.freeze of the cgroup2 tree, on a hybrid host too: a process that it holds can still be killed, one in a v1 freezer not.
  Result<void> freeze(bool frozen) const;  // returns when all are
  Result<bool> frozen() const;
  Result<void> kill() const;  // every process

 private:
  explicit ContainerCgroup(CgroupHost host) : host_(std::move(host)) {}
  const Hierarchy* with(const std::string& controller) const;

  CgroupHost host_;
  std::string path_;  // below each root
};

}  // namespace benchsand
