// The policy: task and profile, resolved. Every field is decided; nothing is left to an engine's default.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "oci/limits.h"
#include "oci/mountinfo.h"
#include "oci/profile.h"
#include "oci/relaxation.h"
#include "oci/result.h"
#include "oci/task_spec.h"

namespace benchsand {

enum class CgroupLayout { v1, hybrid, v2 };  // hybrid: controllers on v1, a cgroup2 tree beside them
const char* to_text(CgroupLayout layout);

// What decide must know about the host; gathered by shim/host_facts, so that decide stays pure.
struct HostFacts {
  CgroupLayout cgroup = CgroupLayout::v2;
  std::string kernel;         // uname -r
  std::string delegate_name;  // crun or runc
  std::string delegate_version;
  std::uint64_t processors = 0;
};

// The host's ids of one run's user namespace, users and groups alike: the container's root, and its candidate. The
// namespace belongs to `root`: the kernel charges what it counts per user to the owner too.
struct HostIds {
  std::uint32_t root = 0, candidate = 0;
};

struct Policy {
  std::string task_name, task_sha256;
  std::string profile_name, profile_sha256;
  std::vector<std::string> command;
  std::vector<std::string> env;  // KEY=VALUE, sorted; PATH, HOME and TMPDIR always decided
  std::string workdir;
  std::string rootfs;              // absolute host path, directory or tar; empty: there is an image
  std::optional<ImageRef> image;   // its path absolute
  std::string image_digest;        // of its config, "sha256:…", once it is known
  std::string stdin_file;          // absolute host path; empty: no input
  std::vector<InputMount> inputs;  // absolute host sources, sorted by target
  std::string output;
  Limits limits;
  std::uint64_t stdio_total_bytes = 0;
  CollectCaps collect;
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::string> masked_paths, readonly_paths;
  FilterProof filter_proof = FilterProof::dump;
  std::optional<std::uint64_t> timeline_us;  // interval of the samples; absent: none
  RefusalCaps refusals;
  RootfsMount rootfs_mount = RootfsMount::overlay;
  UserNamespace user_namespace = UserNamespace::own;
  std::string cpuset;  // processors of the host, as the kernel writes them; empty: not asked for
  SeccompRules seccomp;
  std::vector<EgressCounter> egress_counters;
  ExecRule exec = ExecRule::allow;
  std::vector<std::string> without_runtime;  // walls; see Profile
  bool plain = false;               // in an engine's container, without benchsand's runtime; see oci/without_runtime.h
  bool terminal = false;            // the three streams are a terminal that an engine keeps; see take_terminal
  std::set<Relaxation> taken_down;  // by a test; see oci/relaxation.h
  // Of a run whose user namespace is its own; the run takes them. Nothing that was decided, so not in the policy's JSON.
  std::optional<HostIds> host_ids;
  // Where the task names its files: "task.yaml:7:13: ", by "rootfs", "image", "stdin" and "input for /task"; for messages alone.
  std::map<std::string, std::string> places;
  std::vector<std::string> relaxations;  // every loosening by name; empty for strict
  std::vector<std::string> notices;      // what was decided otherwise than asked, and why
};

struct TaskSource {
  std::string sha256;     // of the task file's bytes
  std::string directory;  // absolute; relative paths of the task are relative to it
};

// Kind usage: over a maximum, memory < disk + headroom, a target inside /proc, /dev or /sys, targets that
// overlap, a workdir or output that is not absolute, an environment name with '=' or NUL.
// A bound that is not usable (zero, negative, NaN, infinite) becomes the profile's default with a notice.
Result<Policy> decide(const TaskSpec& task, const TaskSource& source, const Profile& profile,
                      const std::string& profile_sha256, const HostFacts& host);

// An engine's container may have a terminal (`docker run -t`): a loosening by name, for what goes through it is neither counted
// nor capped.
void take_terminal(Policy& policy);

// The mounts this policy grants, as they must appear in /proc/PID/mountinfo.
std::vector<GrantedMount> granted_mounts(const Policy& policy);

}  // namespace benchsand
