// What every task of a run must have in common with its init: namespaces, filter, privileges, ids, cgroups. Init is proven
// against the policy at the door; nothing that the candidate may call changes any of it, so each later task must be as init was.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "oci/kernel_files.h"

namespace benchsand {

inline constexpr std::array kPostureNamespaces{"mnt", "pid", "ipc", "uts", "net", "cgroup", "user"};

struct TaskPosture {
  std::array<std::uint64_t, kPostureNamespaces.size()> namespaces{};  // inodes; 0: the task has none of this type
  ProcessStatus status;
  std::string cgroups;  // the text of /proc/PID/cgroup
};

// In words, by the wall they belong to; empty where there is none.
struct PostureDifferences {
  std::string namespaces, privileges, syscalls, cgroups;
};
PostureDifferences posture_differences(const TaskPosture& task, const TaskPosture& init);

// The first line in which two texts of /proc/PID/cgroup differ, as the first has it; empty when they do not.
std::string cgroup_difference(const std::string& task, const std::string& init);

// True of the text of a task that stands in the root of every hierarchy, however far above our own cgroup namespace that is.
bool in_root_cgroups(const std::string& text);

// Findings about many tasks as one text that stays short: "none", or the first few and how many more.
class Findings {
 public:
  void add(const std::string& task, const std::string& difference);  // an empty difference is none
  bool none() const { return count_ == 0; }
  std::string text() const;

 private:
  std::string first_;
  std::size_t count_ = 0;
};

}  // namespace benchsand
