// Copies the candidate's output out of the tmpfs after every process is dead: regular files with one name, within caps.
// Nothing is followed; what is not taken is listed with its reason.
#pragma once

#include <vector>

#include "oci/policy.h"
#include "oci/record.h"
#include "shim/sys.h"

namespace benchsand {

struct Collected {
  std::vector<CollectedFile> files;
  std::vector<RefusedFile> refused;  // the first 1000
  std::uint64_t refused_more = 0;    // how many came after
};

// From the mount's root into the existing empty directory `into`.
Result<Collected> collect_outputs(const Fd& mount, const CollectCaps& caps, const Fd& into);

}  // namespace benchsand
