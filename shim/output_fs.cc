#include "shim/output_fs.h"

#include <sys/mount.h>

#include <cerrno>

#include "shim/new_mount.h"

namespace benchsand {

namespace {

Result<struct statfs> space(const Fd& mount) {
  return sys::fstatfs(mount, "output");
}

std::uint64_t used_bytes(const struct statfs& facts) {
  return static_cast<std::uint64_t>(facts.f_blocks - facts.f_bfree) * static_cast<std::uint64_t>(facts.f_bsize);
}

}  // namespace

std::string identity_of(const struct stat& facts) {
  return std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino);
}

Result<OutputFs> OutputFs::create(const Policy& policy) {
  NewMount tmpfs = TRY(NewMount::open("tmpfs"));
  const std::string options[][2] = {{"size", std::to_string(policy.limits.disk_bytes)},
                                    {"nr_inodes", std::to_string(policy.limits.files)},
                                    {"mode", "0700"},
                                    {"uid", std::to_string(policy.host_ids ? policy.host_ids->candidate : policy.uid)},
                                    {"gid", std::to_string(policy.host_ids ? policy.host_ids->candidate : policy.gid)}};
  for (const auto& option : options) TRY_VOID(tmpfs.set(option[0], option[1]));
  OutputFs output;
  output.mount_ = TRY(tmpfs.create(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
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
