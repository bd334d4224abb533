// `docker exec` and its kind: further processes that a delegate brings into a running container. The delegate connects anew to
// the run's listener for each, and each waits at a door of its own: its first exec is answered only once it is what init was at
// the run's door. A difference ends the run.
#pragma once

#include <list>
#include <optional>
#include <string>

#include "oci/evidence.h"
#include "oci/policy.h"
#include "oci/verdict.h"
#include "shim/door.h"
#include "shim/host_tasks.h"
#include "shim/supervisor.h"

namespace benchsand {

class ExecDoors {
 public:
  // All of it must outlive the watch. `id` is the delegate's name of the container; `limits_from` the run's user namespace,
  // where a delegate cannot set the limits and benchsand has to (limits_at_the_door), else null.
  static Result<ExecDoors> open(const SeccompListener& listener, std::string id, const Policy& policy,
                                const ExpectedFilter& filter, const Ledger& ledger, TaskWatch& tasks,
                                Supervisor& supervisor, const Fd* limits_from);
  ExecDoors(ExecDoors&&) = default;
  ExecDoors& operator=(ExecDoors&&) = delete;
  ~ExecDoors();

  // Around every exec that the delegate is told to do: until then nobody may come, and after it nobody more.
  void expect();
  void over();  // what the delegate still has to clear away, or to finish, it is given a moment for

  const Fd& fd() const { return wakes_; }  // readable: ready() has something to do
  Result<std::optional<Cause>> ready();
  void observe(Evidence& evidence) const;

 private:
  enum class Step { descriptor, exec, stopping, exec_again, open, turned_away };
  struct Visitor {
    Step step = Step::descriptor;
    std::uint64_t deadline_us = 0;
    Fd connection;
    SeccompNotify notify;
    Notification held;
    Fd pidfd;
    bool room = true, seized = false, filter_read = false;
    pid_t limited = -1;  // whose limits are set
    bool waits() const { return room && step != Step::open && step != Step::turned_away; }
  };

  ExecDoors(const SeccompListener& listener, std::string id, const Policy& policy, const ExpectedFilter& filter,
            const Ledger& ledger, TaskWatch& tasks, Supervisor& supervisor, const Fd* limits_from)
      : listener_(&listener),
        id_(std::move(id)),
        policy_(&policy),
        filter_(&filter),
        ledger_(&ledger),
        tasks_(&tasks),
        supervisor_(&supervisor),
        limits_from_(limits_from) {}
  Result<void> accept();
  Result<bool> advance(Visitor& visitor);  // false: it is gone
  Result<bool> receive(Visitor& visitor);
  Result<void> answer_delegate(const Visitor& visitor, const Notification& notification);
  Result<bool> send_home(Visitor& visitor);
  Result<bool> wait_for_exec(Visitor& visitor);
  Result<void> begin_to_stop(Visitor& visitor);
  Result<void> seize(Visitor& visitor);
  Result<bool> read_filter(Visitor& visitor);
  Result<bool> judge(Visitor& visitor);
  Result<void> look_at(const Visitor& visitor);
  void look_at_filter(const Result<BpfProgram>& attached);
  Result<void> wake_up_by(const Fd& fd);
  Result<void> wake_up_later();
  std::ptrdiff_t at_the_door() const;
  bool is_expected() const;
  void tell_tasks();

  const SeccompListener* listener_;
  std::string id_;
  const Policy* policy_;
  const ExpectedFilter* filter_;
  const Ledger* ledger_;
  TaskWatch* tasks_;
  Supervisor* supervisor_;
  const Fd* limits_from_;
  Fd wakes_, timer_;
  std::list<Visitor> visitors_;  // those that came in stay: the supervisor answers them
  std::uint64_t expected_ = 0, execs_ = 0, last_over_us_ = 0;
  Findings privileges_, syscalls_;
  std::string unread_;
};

// Of a run that lets nobody in.
void observe_no_execs(Evidence& evidence);

}  // namespace benchsand
