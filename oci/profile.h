// What this house allows: bounds, identity, system calls. A profile is written by the operator and is trusted;
// a task can only stay within it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "oci/egress_programs.h"
#include "oci/ledger.h"
#include "oci/limits.h"
#include "oci/result.h"
#include "oci/seccomp.h"

namespace benchsand {

struct Bound {
  std::uint64_t standard = 0;  // used when a task asks for nothing (or nothing usable)
  std::uint64_t maximum = 0;   // asking for more is an error
};

// Caps on what is copied out of the output file system after the run.
struct CollectCaps {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  // sum of the sizes
  std::uint64_t depth = 0;  // path components
  bool operator==(const CollectCaps&) const = default;
};

// How the attached seccomp filter is proven. `dump` reads it back from the kernel (PTRACE_SECCOMP_GET_FILTER, needs
// CONFIG_CHECKPOINT_RESTORE). `compiled` is a loosening for kernels that cannot: benchsand evaluates its own compilation of the rules.
enum class FilterProof { dump, compiled };

// How rootfs and inputs are mounted. `overlay` makes a file system of the run's own over them: no path of the host in the mount
// table inside, no inode shared with another run. `bind` is a loosening for hosts without overlay.
enum class RootfsMount { overlay, bind };
const char* to_text(RootfsMount mount);

// `own`: each run has a user namespace in which only its root and its candidate exist, as two ids of the host that no other
// living run has. `host` is a loosening for hosts that allow none: every run's candidate is the same user of the host.
enum class UserNamespace { own, host };
const char* to_text(UserNamespace user_namespace);

// Whether an engine may start further processes in a container (`docker exec`), behind the same walls. `deny`: it may not.
enum class ExecRule { allow, deny };
const char* to_text(ExecRule rule);

struct Profile {
  std::string name;
  std::map<std::string, Bound> limits;  // every LimitField::name is present
  std::uint64_t stdio_total_bytes = 0;  // stdout+stderr past this ends the run (cause `output`)
  std::uint64_t memory_headroom_bytes =
      0;  // memory must be at least disk plus this: tmpfs is charged to the same cgroup
  CollectCaps collect;
  std::uint32_t uid = 0, gid = 0;  // never 0: a profile that says 0 is an error
  FilterProof filter_proof = FilterProof::dump;
  std::optional<std::uint64_t> timeline_us;  // interval of the samples; absent: none are taken
  RefusalCaps refusals;                      // past these the run is ended (cause `refusals`)
  RootfsMount rootfs_mount = RootfsMount::overlay;
  std::vector<EgressCounter> egress_counters;  // attached and required; each that is missing is a loosening
  UserNamespace user_namespace = UserNamespace::own;
  ExecRule exec = ExecRule::allow;
  // The walls of which may stay unobserved what only benchsand's runtime can observe (oci/without_runtime.h). Empty: none, and an
  // engine that does not know the runtime runs nothing that has a score.
  std::vector<std::string> without_runtime;
  // Processors of the host that a run may use, in the kernel's own form; empty: those that benchsand itself may use.
  std::string cpuset;
  SeccompRules seccomp;
};

// Same error form as parse_task_spec. A limit that is missing, zero or has default > max is an error: a profile is complete or refused.
Result<Profile> parse_profile(const std::string& text, const std::string& name);

}  // namespace benchsand
