#include "shim/output_fs.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace benchsand {

namespace {

Result<void> configure(const Fd& context, unsigned int command, const char* key, const char* value) {
  if (::syscall(SYS_fsconfig, context.get(), command, key, value, 0) == 0) return {};
  return sys_error("fsconfig tmpfs", std::string(key ? key : "create") + (value ? std::string("=") + value : ""),
                   errno);
}

Result<struct statfs> space(const Fd& mount) {
  struct statfs facts {};
  if (::fstatfs(mount.get(), &facts) != 0) return sys_error("fstatfs", "output", errno);
  return facts;
}

std::uint64_t used_bytes(const struct statfs& facts) {
  return static_cast<std::uint64_t>(facts.f_blocks - facts.f_bfree) * static_cast<std::uint64_t>(facts.f_bsize);
}

}  // namespace

std::string identity_of(const struct stat& facts) {
  return std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino);
}

Result<OutputFs> OutputFs::create(const Policy& policy) {
  const long opened = ::syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
  if (opened < 0) return sys_error("fsopen", "tmpfs", errno);
  const Fd context(static_cast<int>(opened));
  const std::string options[][2] = {{"size", std::to_string(policy.limits.disk_bytes)},
                                    {"nr_inodes", std::to_string(policy.limits.files)},
                                    {"mode", "0700"},
                                    {"uid", std::to_string(policy.uid)},
                                    {"gid", std::to_string(policy.gid)}};
  for (const auto& option : options)
    TRY_VOID(configure(context, FSCONFIG_SET_STRING, option[0].c_str(), option[1].c_str()));
  TRY_VOID(configure(context, FSCONFIG_CMD_CREATE, nullptr, nullptr));
  const long mounted = ::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (mounted < 0) return sys_error("fsmount", "tmpfs", errno);
  OutputFs output;
  output.mount_ = Fd(static_cast<int>(mounted));
  return output;
}

Result<std::string> OutputFs::identity() const {
  return identity_of(TRY(sys::fstat(mount_, "output")));
}

void OutputFs::observe(Evidence& evidence, const std::string& suffix) const {
  const auto facts = space(mount_);
  if (!facts) {
    evidence.missing("output.bytes" + suffix, facts.error().message, "fstatfs");
    evidence.missing("output.inodes" + suffix, facts.error().message, "fstatfs");
    return;
  }
  evidence.set("output.bytes" + suffix,
               static_cast<std::uint64_t>(facts->f_blocks) * static_cast<std::uint64_t>(facts->f_bsize),
               "fstatfs f_blocks");
  evidence.set("output.inodes" + suffix, static_cast<std::uint64_t>(facts->f_files), "fstatfs f_files");
}

Result<std::uint64_t> OutputFs::bytes_used() const {
  return used_bytes(TRY(space(mount_)));
}

void OutputFs::observe_spent(Evidence& evidence) const {
  const auto facts = space(mount_);
  if (!facts) return evidence.missing("output.bytes_used", facts.error().message, "fstatfs");
  evidence.set("output.bytes_used", used_bytes(*facts), "fstatfs f_bfree");
  evidence.set("output.inodes_used",
               static_cast<std::uint64_t>(facts->f_files) - static_cast<std::uint64_t>(facts->f_ffree),
               "fstatfs f_ffree");
}

}  // namespace benchsand
