#include "shim/kernel_fs.h"

#include <linux/magic.h>

#include <cstdint>

namespace benchsand {

namespace {

// devtmpfs calls itself a tmpfs; its files are stored, and its devices are refused as devices.
constexpr std::pair<std::uint32_t, const char*> kKernelFileSystems[] = {
    {PROC_SUPER_MAGIC, "proc"},        {SYSFS_MAGIC, "sysfs"},       {CGROUP_SUPER_MAGIC, "cgroup"},
    {CGROUP2_SUPER_MAGIC, "cgroup2"},  {DEBUGFS_MAGIC, "debugfs"},   {TRACEFS_MAGIC, "tracefs"},
    {SECURITYFS_MAGIC, "securityfs"},  {BPF_FS_MAGIC, "bpf"},        {DEVPTS_SUPER_MAGIC, "devpts"},
    {BINFMTFS_MAGIC, "binfmt_misc"},   {SELINUX_MAGIC, "selinuxfs"}, {SMACK_MAGIC, "smackfs"},
    {PSTOREFS_MAGIC, "pstore"},        {EFIVARFS_MAGIC, "efivarfs"}, {NSFS_MAGIC, "nsfs"},
    {RDTGROUP_SUPER_MAGIC, "resctrl"},
};

}  // namespace

Result<void> require_stored_files(const Fd& opened, const std::string& tried) {
  const auto facts = TRY(sys::fstatfs(opened, tried));
  for (const auto& [magic, name] : kKernelFileSystems)
    if (static_cast<std::uint32_t>(facts.f_type) == magic)
      return usage(tried + ": it lies on " + name +
                   ", where the kernel makes up what is read; copy what the task needs to a file system of the host");
  return {};
}

}  // namespace benchsand
