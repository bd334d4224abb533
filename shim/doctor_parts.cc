// The parts that walls are made of, each tried by itself. A part that fails must not keep the next from being tried.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "oci/kernel_files.h"
#include "oci/walls.h"
#include "shim/doctor.h"
#include "shim/filter_dump.h"
#include "shim/helper_process.h"
#include "shim/host_cgroup.h"
#include "shim/output_fs.h"
#include "shim/seccomp_notify.h"

namespace benchsand {

namespace {

Result<void> try_namespace(int flag, const std::string& name) {
  TRY(HelperProcess::start("unshare", name, [flag](int) { return ::unshare(flag) == 0 ? 0 : errno; }));
  return {};
}

int attach_filter_of_one_instruction() {
  sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  const sock_fprog program = {1, &allow};
  const bool attached =
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  return attached ? 0 : errno;
}

// A child attaches a filter and waits; it must come back as it was.
Result<void> try_filter_dump() {
  const auto child = HelperProcess::start("attach a seccomp filter:", "prctl PR_SET_SECCOMP",
                                          [](int) { return attach_filter_of_one_instruction(); });
  if (!child) return fault(child.error().message + "; it needs CONFIG_SECCOMP_FILTER");
  const auto program = TRY(dump_filter(child->pid()));
  if (program.size() != 1 || program[0].k != SECCOMP_RET_ALLOW)
    return fault(
        "read back an attached filter: another one came; benchsand must not itself run under a seccomp filter");
  return {};
}

Result<void> try_pidfd() {
  const auto child = TRY(HelperProcess::start("start", "a child", [](int) { return 0; }));
  return sys::pidfd_send_signal(TRY(sys::pidfd_open(child.pid())), SIGKILL);
}

Result<void> try_overlay() {
  const long context = ::syscall(SYS_fsopen, "overlay", 1u);
  if (context < 0) return sys_error("fsopen", "overlay", errno);
  const Fd closed(static_cast<int>(context));
  return {};
}

Result<void> try_cgroup_bpf() {
  const bpf_insn body[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1}, {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
  attributes.insn_cnt = 2;
  attributes.insns = reinterpret_cast<std::uint64_t>(body);
  attributes.license = reinterpret_cast<std::uint64_t>("");
  const long program = ::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes);
  if (program < 0) return sys_error("bpf", "BPF_PROG_LOAD of a cgroup_skb program", errno);
  const Fd closed(static_cast<int>(program));
  return {};
}

constexpr const char* kPrivileged = " (in a container: --privileged, or run it on the host)";

// What the tree of a run takes: namespaces and mounts, reading other users' processes, device nodes, ids, lo.
Result<void> has_capabilities() {
  struct Capability {
    int number;
    const char* name;
  };
  static constexpr Capability kNeeded[] = {{0, "CAP_CHOWN"},       {1, "CAP_DAC_OVERRIDE"}, {3, "CAP_FOWNER"},
                                           {5, "CAP_KILL"},        {6, "CAP_SETGID"},       {7, "CAP_SETUID"},
                                           {8, "CAP_SETPCAP"},     {12, "CAP_NET_ADMIN"},   {18, "CAP_SYS_CHROOT"},
                                           {19, "CAP_SYS_PTRACE"}, {21, "CAP_SYS_ADMIN"},   {27, "CAP_MKNOD"}};
  const std::string source = "/proc/self/status";
  const auto status = TRY(parse_process_status(TRY(sys::read_file(sys::kHere, source)), source));
  std::string missing;
  for (const auto& capability : kNeeded)
    if ((status.cap_effective >> capability.number & 1) == 0)
      missing += std::string(missing.empty() ? "" : ", ") + capability.name;
  if (missing.empty()) return {};
  return fault("have root's capabilities: " + missing + " missing; give benchsand these" + kPrivileged);
}

class Parts {
 public:
  explicit Parts(const Policy& policy) : policy_(policy), decided_(policy_json(policy)) {}

  void cgroups();
  void processes();
  void files();
  std::vector<DoctorPart> take() { return std::move(parts_); }

 private:
  using Walls = std::vector<std::string>;
  // `capability`: what a refusal for want of permission means; everything else is a matter of the kernel.
  DoctorPart& add(const std::string& name, const std::string& means, Walls walls, const Result<void>& tried,
                  const std::string& cure, const std::string& capability = "") {
    parts_.push_back({name, means, std::move(walls), true, true, {}});
    if (tried) return parts_.back();
    const int number = tried.error().error_number;
    const bool forbidden = !capability.empty() && (number == EPERM || number == EACCES);
    parts_.back().problem =
        finding_of(tried.error().message, forbidden ? "give benchsand " + capability + kPrivileged : cure);
    return parts_.back();
  }
  void limit(const std::string& name, const std::string& controller, const std::string& v1_file,
             const std::string& v2_file, const std::string& value, Walls walls);
  std::string controller_cure(const std::string& controller) const;

  const Policy& policy_;
  const nlohmann::json decided_;  // asked by key for what only some profiles want
  std::vector<DoctorPart> parts_;
  std::optional<CgroupHost> host_;
  std::optional<RunCgroup> cgroup_;
};

// What the kernel says of the controller decides between a mount, a boot option and another kernel.
std::string Parts::controller_cure(const std::string& controller) const {
  const auto table = sys::read_file(sys::kHere, "/proc/cgroups");
  const auto at = table ? table->find("\n" + controller + "\t") : std::string::npos;
  const bool hybrid = host_ && host_->layout() == CgroupLayout::hybrid;
  const std::string mount = "mkdir -p /sys/fs/cgroup/" + controller + " && mount -t cgroup -o " + controller +
                            " cgroup /sys/fs/cgroup/" + controller;
  if (table && at == std::string::npos)
    return "boot a kernel that has it (CONFIG_MEMCG, CONFIG_CGROUP_PIDS, CONFIG_CFS_BANDWIDTH)";
  if (table && table->substr(at + 1, table->find('\n', at + 1) - at - 1).ends_with("\t0"))
    return "boot with cgroup_enable=" + controller + " on the kernel's command line";
  return hybrid ? mount
                : "in a container: give it a cgroup tree with all controllers (--privileged), or run benchsand on the "
                  "host";
}

void Parts::limit(const std::string& name, const std::string& controller, const std::string& v1_file,
                  const std::string& v2_file, const std::string& value, Walls walls) {
  const bool there = host_ && host_->with(controller);
  const std::string file = there && host_->with(controller)->unified ? v2_file : v1_file;
  const std::string cure = there ? "see what the kernel offers in " + host_->with(controller)->mount : "";
  if (!there) {
    add(name, "no " + controller + " controller is mounted", std::move(walls),
        fault("find the " + controller + " controller: not in any mounted cgroup hierarchy"),
        controller_cure(controller));
  } else if (cgroup_) {
    add(name, host_->with(controller)->mount + "/…/" + file, std::move(walls),
        cgroup_->try_limit(controller, file, value),
        file.find("sw") == std::string::npos ? cure : "boot with swapaccount=1 on the kernel's command line");
  } else {
    add(name, host_->with(controller)->mount, std::move(walls), {}, "").tried = false;
  }
}

void Parts::cgroups() {
  const Walls all = {"memory", "processes", "cpu-time", "teardown", "evidence"};
  const std::string cure =
      "mount -t cgroup2 none /sys/fs/cgroup/unified, or boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)";
  auto found = CgroupHost::look();
  if (found) host_.emplace(std::move(*found));
  if (!host_ || !host_->has_unified()) {
    add("cgroup2 tree", "/proc/self/mountinfo", all,
        host_ ? fault("find a cgroup2 tree: none is mounted") : Result<void>(std::unexpected(found.error())), cure);
  } else {
    add("cgroup2 tree", host_->unified().mount, all, {}, "");
  }
  const auto id = sys::random_hex(12);
  auto made =
      host_ && id ? RunCgroup::create(*host_, "r" + *id) : Result<RunCgroup>(fault("no cgroup hierarchy is mounted"));
  if (!host_ || host_->hierarchies().empty())
    add("writable cgroups", "mkdir", all, {}, "").tried = false;
  else
    add("writable cgroups", "mkdir", all, made ? Result<void>() : Result<void>(std::unexpected(made.error())),
        "remount it for writing: mount -o remount,rw " + host_->hierarchies().front().mount);
  if (made) cgroup_.emplace(std::move(*made));
  if (cgroup_ && host_->has_unified())
    add("cgroup.kill", host_->unified().mount + "/…/cgroup.kill", all, cgroup_->kill(), "boot Linux 5.14 or newer");
  limit("memory limit", "memory", "memory.limit_in_bytes", "memory.max", "67108864", {"memory"});
  const bool v2 = host_ && host_->with("memory") && host_->with("memory")->unified;
  limit("swap limit", "memory", "memory.memsw.limit_in_bytes", "memory.swap.max", v2 ? "0" : "67108864", {"memory"});
  limit("limit of tasks", "pids", "pids.max", "pids.max", "32", {"processes"});
  limit("CPU quota", "cpu", "cpu.cfs_quota_us", "cpu.max", v2 ? "100000 100000" : "100000", {"cpu-time"});
  // Some may have been made where not all could be.
  const bool whole = cgroup_.has_value();
  cgroup_.reset();
  if (!host_ || host_->hierarchies().empty() || !id) return;
  if (const auto removed = remove_run_cgroups(*host_, "r" + *id); !removed && whole)
    add("removal of cgroups", "rmdir", all, removed, "run benchsand gc");
}

void Parts::processes() {
  add(kCapabilities, "/proc/self/status CapEff", wall_names(), has_capabilities(), "");
  add("seccomp notify", "seccomp SECCOMP_GET_ACTION_AVAIL", {"syscalls", "network", "evidence"},
      require_seccomp_notify(), "boot a kernel with CONFIG_SECCOMP_FILTER");
  add(kFilterDump, "ptrace PTRACE_SECCOMP_GET_FILTER of a child", {"syscalls", "network"}, try_filter_dump(),
      "run benchsand as root with CAP_SYS_PTRACE and CAP_SYS_ADMIN")
      .needed = policy_.filter_proof == FilterProof::dump;
  add("pidfd", "pidfd_open, pidfd_send_signal", {"teardown", "evidence"}, try_pidfd(), "boot Linux 5.14 or newer");
  struct Kind {
    const char* name;
    int flag;
    const char* option;
    Walls walls;
  };
  const Kind kinds[] = {{"mount namespace", CLONE_NEWNS, "CONFIG_NAMESPACES", {"namespaces", "mounts"}},
                        {"pid namespace", CLONE_NEWPID, "CONFIG_PID_NS", {"namespaces", "teardown"}},
                        {"network namespace", CLONE_NEWNET, "CONFIG_NET_NS", {"network"}},
                        {"ipc namespace", CLONE_NEWIPC, "CONFIG_IPC_NS", {"namespaces"}},
                        {"uts namespace", CLONE_NEWUTS, "CONFIG_UTS_NS", {"namespaces"}},
                        {"cgroup namespace", CLONE_NEWCGROUP, "CONFIG_CGROUPS", {"namespaces"}},
                        {"user namespace", CLONE_NEWUSER, "CONFIG_USER_NS", {"privileges"}}};
  for (const auto& kind : kinds)
    add(kind.name, "unshare in a child", kind.walls, try_namespace(kind.flag, kind.name),
        std::string("boot a kernel with ") + kind.option + ", and let sysctl user.max_*_namespaces not be 0",
        "CAP_SYS_ADMIN");
  parts_.back().needed = decided_.value("user_namespace", "") == "own";
}

void Parts::files() {
  const auto output = OutputFs::create(policy_);
  add("mounts without a name", "fsopen, fsconfig, fsmount of a tmpfs", {"output"},
      output ? Result<void>() : Result<void>(std::unexpected(output.error())),
      "boot Linux 5.14 or newer with CONFIG_TMPFS", "CAP_SYS_ADMIN");
  const auto read_only = [&]() -> Result<void> {
    TRY(sys::read_only_mount(TRY(sys::open_directory(sys::kHere, "/")), "/"));
    return {};
  };
  add("read-only copies of mounts", "open_tree, mount_setattr", {"rootfs", "mounts"}, read_only(),
      "boot Linux 5.14 or newer", "CAP_SYS_ADMIN");
  const auto confined = [&]() -> Result<void> {
    const Fd root = TRY(sys::open_directory(sys::kHere, "/proc"));
    TRY(sys::openat2_beneath(root.get(), "self/status", O_RDONLY | O_CLOEXEC));
    return {};
  };
  // /proc/self is a symlink, which must be refused: ELOOP is the answer that is wanted.
  auto answer = confined();
  if (!answer && answer.error().error_number == ELOOP)
    answer = Result<void>();
  else if (answer)
    answer = fault("openat2 /proc/self/status without symlinks: it was opened all the same");
  add("confined opening", "openat2", {"evidence"}, answer, "boot Linux 5.6 or newer");
  add("overlay", "fsopen overlay", {"rootfs"}, try_overlay(),
      "modprobe overlay, or boot a kernel with CONFIG_OVERLAY_FS", "CAP_SYS_ADMIN")
      .needed = decided_.value("rootfs_mount", "") == "overlay";
  const auto counters = decided_.find("egress_counters");
  add("cgroup BPF", "bpf BPF_PROG_LOAD", {"network"}, try_cgroup_bpf(),
      "boot a kernel with CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF", "CAP_BPF and CAP_NET_ADMIN")
      .needed = counters != decided_.end() && !counters->empty();
}

}  // namespace

Result<std::vector<DoctorPart>> try_parts(const Policy& policy, const Fd& signals) {
  Parts parts(policy);
  for (const auto kind : {&Parts::cgroups, &Parts::processes, &Parts::files}) {
    TRY_VOID(go_on(signals));
    (parts.*kind)();
  }
  return parts.take();
}

}  // namespace benchsand
