#include "oci/runtime_documents.h"

#include <array>

namespace benchsand {

namespace {

constexpr std::array<const char*, 41> kCapabilities = {
    "CAP_AUDIT_CONTROL",   "CAP_AUDIT_READ",   "CAP_AUDIT_WRITE",
    "CAP_BLOCK_SUSPEND",   "CAP_BPF",          "CAP_CHECKPOINT_RESTORE",
    "CAP_CHOWN",           "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",          "CAP_FSETID",       "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",       "CAP_KILL",         "CAP_LEASE",
    "CAP_LINUX_IMMUTABLE", "CAP_MAC_ADMIN",    "CAP_MAC_OVERRIDE",
    "CAP_MKNOD",           "CAP_NET_ADMIN",    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",   "CAP_NET_RAW",      "CAP_PERFMON",
    "CAP_SETFCAP",         "CAP_SETGID",       "CAP_SETPCAP",
    "CAP_SETUID",          "CAP_SYSLOG",       "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",        "CAP_SYS_CHROOT",   "CAP_SYS_MODULE",
    "CAP_SYS_NICE",        "CAP_SYS_PACCT",    "CAP_SYS_PTRACE",
    "CAP_SYS_RAWIO",       "CAP_SYS_RESOURCE", "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",  "CAP_WAKE_ALARM"};

// `rro` is here because it is true: what benchsand mounts read-only is one mount with nothing below it. Docker asks for a
// recursively read-only mount only where it is named.
constexpr std::array<const char*, 30> kMountOptions = {
    "async",       "atime",    "bind",       "defaults",  "dev",        "diratime",      "dirsync", "exec",
    "noatime",     "nodev",    "nodiratime", "noexec",    "norelatime", "nostrictatime", "nosuid",  "private",
    "rbind",       "relatime", "ro",         "rprivate",  "rro",        "rslave",        "rw",      "slave",
    "strictatime", "suid",     "sync",       "tmpcopyup", "unbindable", "runbindable"};

nlohmann::json seccomp_features() {
  return {{"enabled", true},
          {"actions",
           {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD",
            "SCMP_ACT_LOG", "SCMP_ACT_NOTIFY", "SCMP_ACT_TRACE", "SCMP_ACT_TRAP"}},
          {"operators",
           {"SCMP_CMP_EQ", "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_LE", "SCMP_CMP_LT", "SCMP_CMP_MASKED_EQ",
            "SCMP_CMP_NE"}},
          {"archs", {"SCMP_ARCH_X86_64"}}};
}

}  // namespace

nlohmann::json features_json(const std::string& profile, const std::string& profile_sha256,
                             const DelegateFacts& delegate) {
  nlohmann::json annotations = {{"benchsand.version", BENCHSAND_VERSION},
                                {"benchsand.profile", profile},
                                {"benchsand.policy-digest", "sha256:" + profile_sha256}};
  if (!delegate.name.empty()) annotations["benchsand.delegate"] = delegate.name + " " + delegate.version;
  return {{"ociVersionMin", "1.0.0"},
          {"ociVersionMax", "1.2.0"},
          {"hooks", nlohmann::json::array()},  // none is called
          {"mountOptions", kMountOptions},
          {"linux",
           {{"namespaces", {"cgroup", "ipc", "mount", "network", "pid", "user", "uts"}},
            {"capabilities", kCapabilities},
            {"cgroup", {{"v1", true}, {"v2", true}, {"systemd", false}, {"systemdUser", false}, {"rdma", false}}},
            {"seccomp", seccomp_features()},
            {"apparmor", {{"enabled", false}}},
            {"selinux", {{"enabled", false}}},
            {"intelRdt", {{"enabled", false}}},
            {"mountExtensions", {{"idmap", {{"enabled", false}}}}}}},
          {"annotations", annotations},
          {"potentiallyUnsafeConfigAnnotations", nlohmann::json::array()}};  // none reaches the delegate
}

nlohmann::json stats_json(const std::string& id, const ContainerStats& stats) {
  const nlohmann::json none = {{"failcnt", 0}};
  return {{"type", "stats"},
          {"id", id},
          {"data",
           {{"cpu",
             {{"usage",
               {{"total", stats.cpu_us * 1000}, {"user", stats.user_us * 1000}, {"kernel", stats.system_us * 1000}}},
              {"throttling",
               {{"periods", stats.periods},
                {"throttledPeriods", stats.throttled_periods},
                {"throttledTime", stats.throttled_us * 1000}}}}},
            {"memory",
             {{"usage",
               {{"limit", stats.memory_limit},
                {"usage", stats.memory},
                {"max", stats.memory_peak},
                {"failcnt", stats.memory_refused}}},
              {"swap", none},
              {"kernel", none},
              {"kernelTCP", none}}},
            {"pids", {{"current", stats.pids}, {"limit", stats.pids_limit}}},
            {"blkio", nlohmann::json::object()},
            {"hugetlb", nlohmann::json::object()},
            {"intel_rdt", nlohmann::json::object()},
            {"network_interfaces", nullptr}}}};
}

nlohmann::json example_config_json() {
  const auto mount = [](const char* target, const char* type, std::vector<std::string> options) {
    return nlohmann::json{{"destination", target}, {"type", type}, {"source", type}, {"options", std::move(options)}};
  };
  nlohmann::json namespaces = nlohmann::json::array();
  for (const char* type : {"pid", "network", "ipc", "uts", "mount", "cgroup"}) namespaces.push_back({{"type", type}});
  return {{"ociVersion", "1.0.2"},
          {"process",
           {{"terminal", false},
            {"user", {{"uid", 0}, {"gid", 0}}},
            {"args", {"sh"}},
            {"env", {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
            {"cwd", "/"},
            {"noNewPrivileges", true}}},
          {"root", {{"path", "rootfs"}, {"readonly", true}}},
          {"hostname", "benchsand"},
          {"mounts",
           {mount("/proc", "proc", {"nosuid", "noexec", "nodev"}),
            mount("/dev", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}),
            mount("/dev/pts", "devpts", {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}),
            mount("/dev/shm", "tmpfs", {"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}),
            mount("/dev/mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
            mount("/sys", "sysfs", {"nosuid", "noexec", "nodev", "ro"})}},
          {"linux",
           {{"namespaces", namespaces},
            {"maskedPaths", {"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"}},
            {"readonlyPaths", {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}}}}};
}

}  // namespace benchsand
