// The run's cgroup on the host: an outer cgroup that benchsand makes and owns, and inside it the leaf that the delegate makes.
//
//   v2, and the cgroup2 tree of a hybrid host:   ROOT/benchsand/ID      ROOT/benchsand/ID/ct
//   every v1 hierarchy:                          the same names below its own root
//
// A cgroup is held by directory descriptor and known by its inode. No path is glued from an id that was not made here.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "oci/evidence.h"
#include "oci/kernel_files.h"
#include "oci/policy.h"
#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kCgroupPrefix = "benchsand";
inline constexpr const char* kCgroupLeaf = "ct";

// "r" and 24 hexadecimal digits: the only names that may be looked up, killed or removed below our prefix.
bool is_run_id(const std::string& text);

struct Hierarchy {
  std::set<std::string> controllers;  // memory, pids, cpu, ...; a named v1 hierarchy has "name=…"
  bool unified = false;               // cgroup2
  std::string mount;                  // where it is mounted, for messages
  Fd root;
};

class CgroupHost {
 public:
  // From /proc/self/mountinfo. What is missing for a run is named all at once.
  static Result<CgroupHost> find();
  static Result<CgroupHost> look();  // what there is, be it enough or not

  CgroupLayout layout() const { return layout_; }
  bool has_unified() const { return have_unified_; }
  const std::vector<Hierarchy>& hierarchies() const { return hierarchies_; }
  const Hierarchy& unified() const { return hierarchies_[unified_]; }
  const Hierarchy* with(const std::string& controller) const;
  // Controllers that a hybrid host left on the cgroup2 tree; crun refuses to run while there are any.
  const std::set<std::string>& unified_controllers() const { return unified().controllers; }
  // Run ids that have a cgroup below our prefix in any hierarchy.
  Result<std::vector<std::string>> run_ids() const;

 private:
  CgroupLayout layout_ = CgroupLayout::v2;
  std::vector<Hierarchy> hierarchies_;
  std::size_t unified_ = 0;
  bool have_unified_ = false;
};

// Kills everything in the outer cgroup ID (cgroup.kill), waits until it is empty, removes it everywhere. Absent is fine.
Result<void> remove_run_cgroups(const CgroupHost& host, const std::string& id);

Result<bool> run_cgroup_populated(const CgroupHost& host, const std::string& id);  // false when there is none

// A counter of the leaf, held open because it is read again and again.
struct Meter {
  Fd file;
  std::string name;
  Result<std::uint64_t> read() const;
};

class RunCgroup {
 public:
  // `cpuset`: the run is to be kept on some processors.
  static Result<RunCgroup> create(const CgroupHost& host, const std::string& id, bool cpuset = false);

  // As the delegate must be told: "/benchsand/ID/ct".
  std::string leaf_path() const;
  std::string outer_path() const;  // "/benchsand/ID"
  // The leaf is an engine's, which names it, and may have processes of its own beside it in the outer cgroup.
  void expect_leaf(std::string name);
  Result<pid_t> lone_process() const;      // the one that is in the leaf, before it is open; else an error
  Result<bool> leaf_is_populated() const;  // false when there is none
  // v2: one kill for memory ends the whole run. No engine asks its runtime for that; whether it holds is observed.
  Result<void> end_whole_on_oom() const;
  bool has_swap_file() const;  // v2: memory.swap.max exists here

  // At the door: the leaf must be where it was asked for, in every hierarchy, by the process's own /proc/PID/cgroup text.
  Result<void> open_leaf(const std::string& membership_text, const std::string& source, Evidence& evidence);

  // Limits as the kernel holds them; `suffix` is "" at the door and ".end" after the end.
  void observe_limits(Evidence& evidence, const std::string& suffix) const;
  void observe_alone(Evidence& evidence) const;  // at the door: init, and nobody else
  void observe_spent(Evidence& evidence) const;
  void observe_empty(Evidence& evidence) const;

  Result<std::uint64_t> cpu_usage_us() const;
  Result<std::uint64_t> processes() const;  // in the leaf now
  Result<Meter> meter(const std::string& controller, const std::string& v1_file, const std::string& v2_file) const;
  // The tasks in the leaf of any hierarchy; 0 stands for one of a pid namespace that has no numbers here.
  Result<std::set<pid_t>> tasks() const;
  Result<bool> frozen() const;  // the leaf, in either way, itself or from above
  Result<void> kill() const;    // everything below the outer cgroup
  // Writes a limit to the outer cgroup and reads it back: does it hold here.
  Result<void> try_limit(const std::string& controller, const std::string& file, const std::string& value) const;
  Result<void> wait_empty(std::uint64_t deadline_us) const;
  const std::string& id() const { return id_; }
  // On the cgroup2 tree, where BPF programs are attached; the leaf is open from the door on.
  const Fd& bpf_outer() const { return unified().outer; }
  const Fd& bpf_leaf() const { return unified().leaf; }
  std::string bpf_name() const;  // full path, for `source`

 private:
  struct Place {
    const Hierarchy* hierarchy = nullptr;
    Fd outer, leaf;
  };
  const Place* place(const std::string& controller) const;
  const Place& unified() const;
  Result<std::string> read(const Place& place, const std::string& file) const;
  std::string name(const Place& place, const std::string& file) const;  // full path, for `source`

  void observe_v2_limits(Evidence& evidence, const std::string& suffix) const;
  void observe_v1_limits(Evidence& evidence, const std::string& suffix) const;
  void take_cpuset(Evidence& evidence, const std::string& suffix) const;
  void take_device_writes(Evidence& evidence, const std::string& suffix) const;
  void take_throttling(Evidence& evidence) const;
  void take_counter(Evidence& evidence, const std::string& key, const std::string& controller, const std::string& file,
                    bool optional) const;
  void take_keyed(Evidence& evidence, const std::string& key, const std::string& controller, const std::string& file,
                  const std::string& counter) const;
  void take_limit(Evidence& evidence, const std::string& key, const std::string& controller,
                  const std::string& file) const;

  CgroupLayout layout_ = CgroupLayout::v2;
  std::string id_, leaf_ = kCgroupLeaf;
  bool is_engines_ = false;  // the leaf
  std::vector<Place> places_;
  Fd cpu_stat_;  // held open: read many times a second near the cap
};

}  // namespace benchsand
