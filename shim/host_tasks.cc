#include "shim/host_tasks.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "oci/kernel_files.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kExiting = 4;  // PF_EXITING

bool is_over(const Error& error) {
  return error.error_number == ENOENT || error.error_number == ESRCH;
}

// `dir` is a task's directory. A task that is ending has left its namespaces, and on v1 its cgroups, while it can still be
// seen; it will not run again, so what is missing or different is no finding then.
bool is_ending(int dir, const std::string& name) {
  const auto text = sys::read_file(dir, "stat");
  if (!text) return is_over(text.error());
  const auto stat = parse_process_stat(*text, name + "/stat");
  return stat && (stat->state == 'Z' || stat->state == 'X' || (stat->flags & kExiting) != 0);
}

// A fork shows the child before it puts it into the parent's cgroups, and the parent can be throttled in between. The child
// stands in the root cgroups then and has never run: not even for the page fault that the first return from a fork takes.
bool is_being_made(int dir, const std::string& cgroups, const std::string& name) {
  if (!in_root_cgroups(cgroups)) return false;
  const auto text = sys::read_file(dir, "stat");
  const auto stat =
      text ? parse_process_stat(*text, name + "/stat") : Result<ProcessStat>(std::unexpected(text.error()));
  return stat && stat->minor_faults == 0 && stat->cpu_ticks == 0;
}

// A kernel without a type has no such link in any task.
Result<std::uint64_t> namespace_inode(int dir, const std::string& type, const std::string& name) {
  const auto link = sys::readlinkat(dir, "ns/" + type);
  if (!link && link.error().error_number == ENOENT) return std::uint64_t{0};
  if (!link) return std::unexpected(link.error());
  return parse_namespace_link(*link, type, name + "/ns/" + type);
}

// Ascending, but those greater than `last` come first.
template <class Numbers>
std::vector<pid_t> turned(const Numbers& numbers, pid_t last) {
  std::vector<pid_t> list(numbers.begin(), numbers.end());
  std::sort(list.begin(), list.end());
  std::rotate(list.begin(), std::upper_bound(list.begin(), list.end(), last), list.end());
  return list;
}

// The numbers among the names of a /proc directory.
Result<std::vector<pid_t>> numbers_in(int dir, const std::string& path) {
  std::vector<pid_t> list;
  for (const auto& entry : TRY(sys::list_directory(dir, path)))
    if (entry.find_first_not_of("0123456789") == std::string::npos)
      list.push_back(static_cast<pid_t>(TRY(parse_counter(entry + "\n", path))));
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

Result<TaskPosture> read_posture(int dir, const std::string& name) {
  TaskPosture posture;
  posture.status = TRY(parse_process_status(TRY(sys::read_file(dir, "status")), name + "/status"));
  for (std::size_t i = 0; i < kPostureNamespaces.size(); ++i)
    posture.namespaces[i] = TRY(namespace_inode(dir, kPostureNamespaces[i], name));
  posture.cgroups = TRY(sys::read_file(dir, "cgroup"));
  return posture;
}

Result<TaskWatch> TaskWatch::open(const HostProcess& init, Fd processes, const RunCgroup& cgroup) {
  TaskWatch watch(cgroup);
  watch.init_ = TRY(read_posture(init.dir().get(), "/proc/" + std::to_string(init.pid())));
  watch.seen_ = 1;
  watch.processes_ = std::move(processes);
  return watch;
}

Result<TaskWatch> TaskWatch::open(const HostProcess& init, const Delegate& delegate, const RunCgroup& cgroup) {
  TaskWatch watch = TRY(open(init, TRY(delegate.processes()), cgroup));
  for (const pid_t process : TRY(numbers_in(watch.processes_.get(), "."))) TRY_VOID(watch.except_delegate(process));
  return watch;
}

Result<void> TaskWatch::except_delegate(pid_t process) {
  auto dir = sys::open_directory(processes_.get(), std::to_string(process));
  if (!dir && is_over(dir.error())) return {};
  if (!dir) return std::unexpected(dir.error());
  const auto cgroups = sys::read_file(dir->get(), "cgroup");
  if (!cgroups && is_over(cgroups.error())) return {};
  if (TRY(cgroups) != init_.cgroups) delegates_.emplace(process, std::move(*dir));
  return {};
}

bool TaskWatch::look(std::size_t most) {
  look_inside(most);
  look_outside(most);
  return namespaces_.none() && privileges_.none() && syscalls_.none() && outside_.none() && brought_in_.none() &&
         unread_inside_.empty() && unread_outside_.empty();
}

void TaskWatch::look_inside(std::size_t most) {
  const auto tasks = cgroup_->tasks();
  if (!tasks) {
    unread_inside_ = tasks.error().message;
    return;
  }
  for (const pid_t task : turned(*tasks, last_inside_)) {
    if (most-- == 0) return;
    last_inside_ = task;
    if (task == 0)
      namespaces_.add("a task without a number here", "its pid namespace is not below this one");
    else
      look_at_task(task);
  }
}

void TaskWatch::look_at_task(pid_t task) {
  const std::string name = "/proc/" + std::to_string(task);
  const auto dir = sys::open_directory(sys::kHere, name);
  if (!dir && is_over(dir.error())) return;
  const auto posture = dir ? read_posture(dir->get(), name) : Result<TaskPosture>(std::unexpected(dir.error()));
  if (!posture) {
    if (!dir || !is_ending(dir->get(), name)) unread_inside_ = posture.error().message;
    return;
  }
  ++seen_;
  const auto found = posture_differences(*posture, init_);
  if (leave_unfiltered_ && posture->status.seccomp_mode == 0) return;
  const bool same =
      found.namespaces.empty() && found.privileges.empty() && found.syscalls.empty() && found.cgroups.empty();
  if (same || is_ending(dir->get(), name)) return;
  const std::string who = "task " + std::to_string(task) + " (" + posture->status.name + ")";
  namespaces_.add(who, found.namespaces);
  privileges_.add(who, found.privileges);
  syscalls_.add(who, found.syscalls);
  outside_.add(who, found.cgroups);
}

// In the run's own numbers: init is 1, whoever loses its parent gets init for one, and a parent that has no number is outside.
void TaskWatch::look_at_parent(pid_t process) {
  if (process == 1) return;
  const std::string name = std::to_string(process);
  const auto dir = sys::open_directory(processes_.get(), name);
  if (!dir && is_over(dir.error())) return;
  const auto text = dir ? sys::read_file(dir->get(), "status") : Result<std::string>(std::unexpected(dir.error()));
  const auto status =
      text ? parse_process_status(*text, name + "/status") : Result<ProcessStatus>(std::unexpected(text.error()));
  if ((status && status->parent != 0) || (dir && is_ending(dir->get(), name))) return;
  if (status)
    brought_in_.add("process " + name + " of the run's pid namespace (" + status->name + ")", "its parent is outside");
  else
    unread_outside_ = status.error().message;
}

// While its directory can be read, the number is still that process's.
bool TaskWatch::is_delegates(pid_t process) const {
  const auto found = delegates_.find(process);
  return found != delegates_.end() && sys::read_file(found->second.get(), "stat");
}

bool TaskWatch::is_left_alone(int dir, const std::string& name) const {
  if (!leave_unfiltered_) return false;
  const auto text = sys::read_file(dir, "status");
  const auto status =
      text ? parse_process_status(*text, name + "/status") : Result<ProcessStatus>(std::unexpected(text.error()));
  return status && status->seccomp_mode == 0;
}

// Between the read of its cgroups and that of its state a task that was on its way can come in, and is excused by neither.
bool TaskWatch::has_arrived(int dir, const std::string& cgroups) const {
  if (!leave_unfiltered_ && !in_root_cgroups(cgroups)) return false;
  const auto now = sys::read_file(dir, "cgroup");
  return now && *now == init_.cgroups;
}

void TaskWatch::look_outside(std::size_t most) {
  const auto processes = numbers_in(processes_.get(), ".");
  if (!processes) {
    unread_outside_ = processes.error().message;
    return;
  }
  // A process whose threads were too many for the last look comes first, with the rest of them.
  for (const pid_t process : turned(*processes, last_outside_.first - 1)) {
    if (is_delegates(process)) continue;
    if (nobody_comes_) look_at_parent(process);
    look_at_threads(process, process == last_outside_.first ? last_outside_.second : 0, most);
    if (most == 0) return;
    last_outside_ = {process + 1, 0};
  }
}

void TaskWatch::look_at_threads(pid_t process, pid_t after, std::size_t& left) {
  const std::string folder = std::to_string(process) + "/task";
  const auto threads = numbers_in(processes_.get(), folder);
  if (!threads) {
    if (!is_over(threads.error())) unread_outside_ = threads.error().message;
    return;
  }
  for (const pid_t thread : *threads) {
    if (thread <= after) continue;
    if (left == 0) return;
    --left;
    last_outside_ = {process, thread};
    const std::string path = folder + "/" + std::to_string(thread);
    const auto dir = sys::open_directory(processes_.get(), path);
    if (!dir && is_over(dir.error())) continue;
    const auto cgroups = dir ? sys::read_file(dir->get(), "cgroup") : Result<std::string>(std::unexpected(dir.error()));
    if (cgroups && *cgroups == init_.cgroups) continue;
    if (dir && is_left_alone(dir->get(), path)) continue;
    if (cgroups && is_being_made(dir->get(), *cgroups, path)) continue;
    if (cgroups && has_arrived(dir->get(), *cgroups)) continue;
    // Last, for its end makes each of these unreadable.
    if (dir && is_ending(dir->get(), path)) continue;
    if (cgroups)
      outside_.add("task " + std::to_string(thread) + " of the run's pid namespace",
                   "in " + cgroup_difference(*cgroups, init_.cgroups));
    else
      unread_outside_ = cgroups.error().message;
  }
}

void TaskWatch::observe(Evidence& evidence) const {
  const auto set = [&](const char* key, const Findings& found, const std::string& unread, const char* source) {
    if (!found.none() || unread.empty())
      evidence.set(key, found.text(), source);
    else
      evidence.missing(key, unread, source);
  };
  set("namespaces.tasks", namespaces_, unread_inside_, "/proc/TASK/ns of every task in the cgroup");
  set("privileges.tasks", privileges_, unread_inside_, "/proc/TASK/status of every task in the cgroup");
  set("syscalls.tasks", syscalls_, unread_inside_, "/proc/TASK/status of every task in the cgroup");
  set("processes.outside", outside_, unread_inside_ + unread_outside_, "/proc/TASK/cgroup of the run's pid namespace");
  if (!brought_in_.none())
    for (const char* key : {"privileges.exec", "syscalls.exec"})
      evidence.set(key, brought_in_.text(), "/proc/PID/status of the run's pid namespace");
  evidence.set("processes.tasks_seen", seen_, "/proc/TASK/status");
}

}  // namespace benchsand
