// Mounts of a run that an engine has to find by name. An engine resolves paths in its own mount namespace, so for a moment they are
// attached below the run's folder, where only root can enter and which every engine of this host sees: from before the container is
// made until it has mounts of its own of them. That none is left is part of the teardown's evidence.
#pragma once

#include <string>

#include "shim/sys.h"

namespace benchsand {

class AttachedMounts {
 public:
  explicit AttachedMounts(std::string folder) : folder_(std::move(folder)) {}
  AttachedMounts(const AttachedMounts&) = delete;
  ~AttachedMounts();

  // Where a detached mount then is: FOLDER/NAME. One that is a file cannot be attached so.
  Result<std::string> attach(const Fd& mount, const std::string& name);
  // The descriptors stay good: what is taken away is the name.
  Result<void> detach();

 private:
  std::string folder_;
};

// Whatever is mounted in a folder or over it; what benchsand has left that was killed meanwhile, too.
Result<void> detach_mounts_below(const std::string& folder);

}  // namespace benchsand
