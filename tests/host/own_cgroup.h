// A cgroup as a run has one, for a test's own processes.
#pragma once

#include <optional>

#include "shim/host_cgroup.h"
#include "shim/run_folder.h"
#include "support.h"

namespace benchsand::support {

// A run's cgroup without a run; the folder's lock keeps a gc away.
class OwnCgroup {
 public:
  OwnCgroup() : host_(value(CgroupHost::find())), folder_(value(RunFolder::create())) {
    cgroup_.emplace(value(RunCgroup::create(host_, folder_.id())));
    for (const auto& hierarchy : host_.hierarchies()) REQUIRE(sys::mkdirat(hierarchy.root.get(), leaf(), 0755));
  }
  ~OwnCgroup() {
    CHECK(remove_run_cgroups(host_, folder_.id()));
    CHECK(folder_.remove());
  }
  OwnCgroup(const OwnCgroup&) = delete;
  OwnCgroup& operator=(const OwnCgroup&) = delete;

  RunCgroup& get() { return *cgroup_; }
  bool join() const { return bool(sys::write_file(host_.unified().root.get(), leaf() + "/cgroup.procs", "0")); }
  // As the door does, with the membership text of a process that is where it should be.
  void open_leaf() {
    Evidence ignored;
    REQUIRE(cgroup_->open_leaf("0::" + cgroup_->leaf_path() + "\n", "test", ignored));
  }

 private:
  template <class T>
  static T value(Result<T> result) {
    if (!result) FAIL(result.error().message);
    return std::move(*result);
  }
  std::string leaf() const { return "benchsand/" + folder_.id() + "/ct"; }

  CgroupHost host_;
  RunFolder folder_;
  std::optional<RunCgroup> cgroup_;
};

}  // namespace benchsand::support
