// The one writable place: a tmpfs with exact caps on bytes and inodes. It is mounted detached, so that no name on the host
// leads to it; the delegate's own mount namespace gets it, and when benchsand dies the kernel takes it away.
#pragma once

#include <cstdint>
#include <string>

#include "oci/evidence.h"
#include "oci/policy.h"
#include "shim/sys.h"

namespace benchsand {

class OutputFs {
 public:
  static Result<OutputFs> create(const Policy& policy);
  const Fd& mount() const { return mount_; }
  Result<std::string> identity() const;                               // "device:inode" of its root
  void observe(Evidence& evidence, const std::string& suffix) const;  // bytes and inodes it can hold
  void observe_spent(Evidence& evidence) const;
  Result<std::uint64_t> bytes_used() const;  // now

 private:
  Fd mount_;  // of fsmount(2)
};

// "device:inode" in decimal, as fstat gives them.
std::string identity_of(const struct stat& facts);

}  // namespace benchsand
