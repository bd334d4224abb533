// Counters of a run's attempts to send, in the kernel: BPF programs on the run's outer cgroup. Their map is held here, so
// nothing that the run does can change or hide a count.
#pragma once

#include <string>
#include <vector>

#include "oci/egress_programs.h"
#include "oci/evidence.h"
#include "oci/policy.h"
#include "shim/host_cgroup.h"
#include "shim/sys.h"

namespace benchsand {

class HostEgress {
 public:
  // The programs that the policy requires, in the kernel but attached nowhere. What fails is kept and becomes evidence: a
  // counter that is required and missing is a wall that does not stand.
  static HostEgress load(const Policy& policy);
  void attach(const RunCgroup& cgroup);

  const Result<void>& state() const { return state_; }

  // Which of our programs the kernel would run for a process in the leaf; `suffix` is "" at the door and ".end" after the end.
  void observe_attached(const RunCgroup& cgroup, const std::string& suffix, Evidence& evidence) const;
  void observe_spent(Evidence& evidence) const;

 private:
  struct Program {
    EgressHook hook;
    Fd program, link;
    std::uint32_t id = 0;  // by which the kernel names it
  };
  Result<void> load_all(bool deny);
  Result<void> attach_all(const Fd& cgroup, const std::string& name);
  Result<std::string> attached(const Fd& cgroup) const;

  std::vector<EgressCounter> counters_;
  Result<void> state_;
  Fd counts_;
  std::vector<Program> programs_;
};

}  // namespace benchsand
