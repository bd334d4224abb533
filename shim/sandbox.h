// One sandbox, from a decided policy to its evidence: the steps that `benchsand run` (run.cc) and the monitor of an engine's
// container (monitor.cc) share. Each of them tells its own story with these steps; the order is docs/architecture.md's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/bundle.h"
#include "shim/door.h"
#include "shim/exec_doors.h"
#include "shim/host_baseline.h"
#include "shim/host_egress.h"
#include "shim/host_ids.h"
#include "shim/host_tasks.h"
#include "shim/network_watch.h"
#include "shim/output_fs.h"
#include "shim/private_mount.h"
#include "shim/rootfs.h"
#include "shim/run.h"
#include "shim/supervisor.h"
#include "shim/teardown.h"
#include "shim/user_namespace.h"

namespace benchsand {

inline constexpr std::uint64_t kStartWithinUs = 60'000'000;  // delegate start to the door; slow machines exist
inline constexpr std::uint64_t kEmptyWithinUs = 10'000'000;

class Sandbox {
 protected:
  Sandbox(const Host& host, Policy policy, const RunHooks& hooks)
      : host_(host), policy_(std::move(policy)), hooks_(hooks), ledger_(policy_.seccomp, policy_.refusals) {}
  virtual ~Sandbox() = default;

  // 2. Prepare. Everything made here is known to remains_ from the moment it exists.
  Result<void> make_run_folder(const std::string& id = "");  // a new name, unless it has one
  Result<void> take_host_ids();
  Result<void> make_mounts();
  Result<void> make_listener();

  // 3. Bundle, 4. delegate.
  BundlePlaces bundle_places() const;
  Result<void> write_bundle(const std::string& config);
  std::vector<Attachment> attachments() const;
  Result<void> accept_listener();
  Result<void> take_notify(Result<SeccompNotify> notify);
  std::unexpected<Error> delegate_failed(const std::string& seen);

  // 5. The door, 6. the watch, 7. the end.
  Result<bool> candidate_may_start();
  Result<void> note_watched();
  Result<void> open_task_watch();
  void watch_network(Supervisor& supervisor);
  // For a caller whose delegate brings further processes in.
  Result<void> let_execs_in(Supervisor& supervisor);
  Result<void> observe_end();
  // For a caller that holds init before its own death: its wait status, once it was let die. Absent: init is a zombie.
  virtual Result<std::optional<int>> let_init_die() { return std::nullopt; }
  // Somebody else removes the leaf cgroup as soon as init has died.
  virtual bool leaf_goes_with_init() const { return false; }

  // 9. Release, and prove that all is gone. Also the way out of every error. 10. Judge.
  void tear_down();
  RunReport judged();

  void observed(const char* moment) {
    if (hooks_.observed) hooks_.observed(moment, evidence_);
  }

  const Host& host_;
  Policy policy_;
  const RunHooks& hooks_;
  std::vector<Rule> rules_;  // known once the host ids are
  std::optional<HostIdSlot> host_ids_;
  std::optional<UserNamespaceMade> user_namespace_;
  Ledger ledger_;
  Evidence evidence_;
  End end_;
  RunFacts facts_;
  RunRemains remains_;  // what teardown has to take away
  std::optional<Rootfs> rootfs_;
  std::vector<Input> inputs_;
  std::optional<PrivateMount> root_mount_;
  std::vector<PrivateMount> input_mounts_;
  Fd devices_, places_, network_mount_;
  std::optional<OutputFs> output_;
  std::optional<SeccompListener> listener_;
  std::optional<OutputStream> out_, err_;
  std::optional<Sampler> sampler_;
  Made made_;
  SeccompNotify notify_;
  std::optional<HostEgress> egress_;
  std::optional<Door> door_;
  std::optional<TaskWatch> tasks_;
  std::optional<NetworkWatch> network_watch_;
  std::optional<ExecDoors> exec_doors_;
  HostBaseline baseline_{host_.cgroup};
  Watched watched_;
  bool limits_at_the_door_ = false, started_ = false;
  Fd signals_, stdin_, wall_timer_;

 private:
  Result<void> make_places();
  void observe_leaf_at_end();
  void observe_documents();
};

}  // namespace benchsand
