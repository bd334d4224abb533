// A directory as a tar archive that is made while it is read, and as a fingerprint that changes with it.
#pragma once

#include <memory>
#include <string>

#include "shim/sys.h"

namespace benchsand {

// SHA-256 over what the directory says of everything in it: names, kinds, modes, owners, sizes, times, inodes. The content itself is
// not read: whoever changes it without a trace in these can change this program too.
Result<std::string> tree_fingerprint(const Fd& top);

// In GNU format, for names of any bytes. Devices, sockets and FIFOs are left out.
class TreeTar {
 public:
  static Result<TreeTar> of(const Fd& top);
  TreeTar(TreeTar&&) noexcept;
  TreeTar& operator=(TreeTar&&) noexcept;
  ~TreeTar();

  // The next bytes of the archive; 0: the end.
  Result<std::size_t> read(char* buffer, std::size_t size);

 private:
  struct Parts;
  explicit TreeTar(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace benchsand
