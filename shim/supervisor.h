// The watch over a running candidate: one poll over everything that can happen, no sleeping.
#pragma once

#include <optional>

#include "oci/learned_profile.h"
#include "oci/policy.h"
#include "oci/verdict.h"
#include "shim/door.h"
#include "shim/host_tasks.h"
#include "shim/sampler.h"
#include "shim/stdio.h"

namespace benchsand {

// cgroup.kill signals thread-group leaders, and a leader that has exited while its threads live on does not hear it. The
// signal to init reaches every thread of it, and the kernel then ends all of init's pid namespace.
Result<void> kill_run(const RunCgroup& cgroup, const Door& door);

struct Watched {
  std::optional<Cause> killed_for;  // why the supervisor killed; absent when init ended before
  std::uint64_t wall_used_us = 0;
  // When the supervisor killed: dying takes time that is not the host's being late.
  std::optional<std::uint64_t> killed_at_us, cpu_at_kill_us;
  std::optional<std::uint64_t> left_behind;  // processes beside init when it ended, or that were killed
  bool never_executed = false;               // init ended while it was still the delegate's program
  bool interrupted = false;                  // a signal told benchsand to stop
};

// Opens the door (answers the held exec), holds the delegate, and returns when init is a zombie.
class Supervisor {
 public:
  Supervisor(const Policy& policy, const Door& door, const SeccompNotify& notify, Ledger& ledger,
             const RunCgroup& cgroup, const Fd& signals, const Fd& wall_timer, std::uint64_t processors,
             OutputStream& out, OutputStream& err, TaskWatch& tasks, Sampler* sampler)
      : policy_(policy),
        door_(door),
        notify_(notify),
        ledger_(ledger),
        cgroup_(cgroup),
        signals_(signals),
        wall_timer_(wall_timer),
        processors_(processors),
        out_(out),
        err_(err),
        tasks_(tasks),
        sampler_(sampler) {}

  // What is called is noted here. Whether it is let run is for the policy to say.
  void note_in(LearnedCalls& calls) { learned_ = &calls; }

  Result<Watched> watch();

 private:
  Result<void> start();
  Result<bool> turn();  // false once init has ended
  Result<void> answer();
  Result<void> refuse(const Notification& notification);
  Result<void> check_cpu();
  Result<void> look_again_later();
  Result<void> look();
  Result<void> look_at_ending_init();
  Result<void> count_left_behind(std::uint64_t beside);
  Result<void> kill_for(Cause cause);

  const Policy& policy_;
  const Door& door_;
  const SeccompNotify& notify_;
  Ledger& ledger_;
  const RunCgroup& cgroup_;
  const Fd& signals_;
  const Fd& wall_timer_;  // armed at the door; set anew when the door opens
  std::uint64_t processors_;
  OutputStream& out_;
  OutputStream& err_;
  TaskWatch& tasks_;
  Sampler* sampler_;  // nullptr: the profile wants no timeline
  Fd cpu_timer_, sample_timer_;
  std::uint64_t started_us_ = 0, cpu_baseline_us_ = 0, give_up_us_ = 0, sample_due_us_ = 0, tasks_due_us_ = 0;
  LearnedCalls* learned_ = nullptr;
  bool notify_open_ = true, out_open_ = true, err_open_ = true;
  unsigned int endings_ = 0;
  Watched watched_;
};

}  // namespace benchsand
