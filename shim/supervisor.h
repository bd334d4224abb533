// The watch over a running candidate: one poll over everything that can happen, no sleeping.
#pragma once

#include <poll.h>

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "oci/learned_profile.h"
#include "oci/policy.h"
#include "oci/verdict.h"
#include "shim/door.h"
#include "shim/host_tasks.h"
#include "shim/init_hold.h"
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
  bool was_frozen = false;                   // at one of the looks: by somebody else, for no candidate can
  // The signal of a fault of init's own, of which it will die once its hold is released: it still stands there, and nothing
  // of it may be killed before that, or it dies of the killing.
  std::optional<int> fault;
};

// Something else to wait for while the run is watched. When the descriptor is readable, `ready` takes what there is without
// waiting; a cause that it returns ends the run.
struct Watch {
  const Fd* fd = nullptr;
  std::function<Result<std::optional<Cause>>()> ready;
};

// Opens the door (answers the held exec), holds the delegate, and returns when init is a zombie.
class Supervisor {
 public:
  Supervisor(const Policy& policy, const Door& door, const SeccompNotify& notify, Ledger& ledger,
             const RunCgroup& cgroup, const Fd& signals, const Fd& wall_timer, std::uint64_t processors,
             OutputStream& out, OutputStream& err, TaskWatch& tasks, Sampler* sampler)
      : policy_(policy),
        door_(door),
        ledger_(ledger),
        cgroup_(cgroup),
        signals_(signals),
        wall_timer_(wall_timer),
        processors_(processors),
        out_(out),
        err_(err),
        tasks_(tasks),
        sampler_(sampler) {
    also_answer(notify);
  }

  // What is called is noted here. Whether it is let run is for the policy to say.
  void note_in(LearnedCalls& calls) { learned_ = &calls; }
  // Init is held by ptrace; what it stops for is passed on and counted with the notifications.
  void hold_with(InitHold& hold) { hold_ = &hold; }
  // In place of the answer to a held exec.
  void open_with(std::function<Result<void>()> open) { open_ = std::move(open); }
  // Both also while the run is watched, out of a Watch; what is given must outlive the watch.
  void also_wait(Watch watch) { watches_.push_back(std::move(watch)); }
  void also_answer(const SeccompNotify& notify) { notifies_.push_back({&notify, true}); }

  Result<Watched> watch();

 private:
  Result<void> start();
  Result<bool> turn();  // false once init has ended
  void collect_waits();
  Result<void> serve_watches();
  Result<bool> serve_hold();
  Result<void> answer(const SeccompNotify& notify);
  Result<void> let_run(const SeccompNotify& notify, const Notification& notification);
  static Result<void> drain(OutputStream& stream, bool& open);
  Result<void> refuse(const SeccompNotify& notify, const Notification& notification);
  bool needs_hold(const Notification& notification) const;
  Result<bool> held(const SeccompNotify& notify, const Notification& notification);
  Result<void> ask_again();
  Result<void> check_cpu();
  Result<void> look_again_later();
  Result<void> look();
  Result<void> look_at_ending_init();
  Result<void> count_left_behind(std::uint64_t beside);
  Result<void> kill_for(Cause cause);

  struct Listened {
    const SeccompNotify* notify = nullptr;
    bool open = true;
  };
  struct Waiting {
    const SeccompNotify* notify = nullptr;
    Notification notification;
  };

  const Policy& policy_;
  const Door& door_;
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
  InitHold* hold_ = nullptr;
  std::function<Result<void>()> open_;
  std::deque<Listened> notifies_;  // the run's own first; a deque, for a Watch may add to it, and to the next
  std::deque<Watch> watches_;
  std::deque<Waiting> waiting_;  // execs of init's other threads that cannot be held yet
  std::vector<pollfd> waits_;
  bool out_open_ = true, err_open_ = true;
  unsigned int endings_ = 0;
  Watched watched_;
};

}  // namespace benchsand
