// The host's user and group ids of one run: a pair that no other living run has, far from users, services and other containers.
#pragma once

#include <string>
#include <vector>

#include "oci/kernel_files.h"
#include "oci/policy.h"
#include "shim/sys.h"

namespace benchsand {

// systemd's table of ids has nothing from here up to 0x7ffdffff (https://systemd.io/UIDS-GIDS), and SSSD's default range for
// the users of a directory ends below, at 2000200000.
inline constexpr std::uint32_t kFirstHostId = 0x78000000;
inline constexpr std::uint32_t kHostIdSlots = 65536;  // two ids each: the container's root and its candidate

class HostIdSlot {
 public:
  // Holds a slot until it is destroyed or the process ends. An error says what this host lacks, and what to do.
  static Result<HostIdSlot> take();
  // The first that is free from this one on.
  static Result<HostIdSlot> take_from(std::uint32_t start);
  HostIds ids() const { return {first_, first_ + 1}; }

 private:
  HostIdSlot() = default;
  Fd lock_;
  std::uint32_t first_ = 0;
};

// False where the pair is somebody's (/etc/passwd, /etc/subuid, ...), or does not exist for this process (its own user namespace).
bool host_ids_are_free(std::uint32_t first, const std::vector<IdRange>& taken, const std::vector<IdRange>& own);

}  // namespace benchsand
