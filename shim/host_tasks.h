// The posture of every task of a run, while it runs and when it ends: what init had at the door, each task must have, and
// none may be outside the run's cgroup.
//
// Two lists, for a task can be missing from either: the tasks in the run's cgroup (one that was put there from outside
// shows here), and the processes of a pid namespace in which the whole run lives (one that left the cgroup shows here): the
// keeper's, or where there is no keeper the container's own.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "oci/evidence.h"
#include "oci/task_posture.h"
#include "shim/delegate.h"
#include "shim/host_cgroup.h"
#include "shim/host_process.h"

namespace benchsand {

inline constexpr std::size_t kEveryTask = ~std::size_t{0};

// Of the task whose directory in /proc this is.
Result<TaskPosture> read_posture(int dir, const std::string& name);

class TaskWatch {
 public:
  // At the door. Init alone is the measure, and of init only the task that executes: runc's init is a Go program with
  // threads of its own, which never run anything of the candidate's, for the kernel ends them at that exec.
  static Result<TaskWatch> open(const HostProcess& init, const Delegate& delegate, const RunCgroup& cgroup);
  // The container's own pid namespace, as its proc file system shows it: init, and nobody else at the door.
  static Result<TaskWatch> open(const HostProcess& init, Fd processes, const RunCgroup& cgroup);

  // Looks at up to `most` tasks of each list, going on where the last look stopped. False once anything was found: a
  // difference, or a task that lives and cannot be read.
  bool look(std::size_t most);
  void observe(Evidence& evidence) const;
  const TaskPosture& measure() const { return init_; }
  // Where no exec passes a door: a process whose parent is outside was brought in. One that comes and goes between two looks is
  // not seen, so that none was is no observation.
  void expect_nobody_brought_in() { nobody_comes_ = true; }
  // While a delegate brings a further process in: its own tasks are those without a filter, for the candidate's all have one.
  void leave_delegates_alone(bool leave) { leave_unfiltered_ = leave; }

 private:
  TaskWatch(const RunCgroup& cgroup) : cgroup_(&cgroup) {}
  void look_inside(std::size_t most);
  void look_outside(std::size_t most);
  void look_at_task(pid_t task);
  void look_at_parent(pid_t process);
  bool is_left_alone(int dir, const std::string& name) const;
  bool has_arrived(int dir, const std::string& cgroups) const;
  void look_at_threads(pid_t process, pid_t after, std::size_t& left);
  Result<void> except_delegate(pid_t process);
  bool is_delegates(pid_t process) const;

  const RunCgroup* cgroup_;
  TaskPosture init_;
  Fd processes_;  // the /proc of the pid namespace
  // Who was there beside init before anything of the candidate ran: keeper, delegate, and crun's helper that hands over the
  // listener. By directory: a number may be given again.
  std::map<pid_t, Fd> delegates_;
  pid_t last_inside_ = 0;                          // task
  std::pair<pid_t, pid_t> last_outside_ = {0, 0};  // process and its thread
  Findings namespaces_, privileges_, syscalls_, outside_, brought_in_;
  std::string unread_inside_, unread_outside_;
  std::uint64_t seen_ = 0;
  bool leave_unfiltered_ = false, nobody_comes_ = false;
};

}  // namespace benchsand
