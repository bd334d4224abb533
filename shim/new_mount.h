// A file system of benchsand's own, made with the mount API of descriptors: it has no name on the host until somebody attaches it.
#pragma once

#include <string>

#include "shim/sys.h"

namespace benchsand {

class NewMount {
 public:
  static Result<NewMount> open(const std::string& type);  // "tmpfs", "overlay"
  Result<void> set(const std::string& key, const std::string& value);
  // The detached mount, with MOUNT_ATTR_* attributes.
  Result<Fd> create(std::uint64_t attributes);

 private:
  NewMount() = default;
  Fd context_;
  std::string type_;
};

}  // namespace benchsand
