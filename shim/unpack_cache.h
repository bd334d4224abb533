// A directory in which something that was unpacked is kept by the digest of what it was made from. What is there under a digest is
// complete: it is made beside it, under a lock, and gets its name at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kStateBase = "/var/lib/benchsand";

class UnpackCache {
 public:
  // Made if it is not there; root's alone, for what is unpacked can hold set-user-ID programs. `what` is what messages call an
  // entry: "rootfs", "image".
  static Result<UnpackCache> make(const std::string& path, const std::string& what);
  // Nullopt: it is not there, or an older version's.
  static Result<std::optional<UnpackCache>> find(const std::string& path, const std::string& what);
  // Removes what older versions have unpacked, which make() puts aside, for their runs made places in it; a line for each.
  static Result<std::vector<std::string>> collect_older(const std::string& path);

  const Fd& dir() const { return dir_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  // No symbolic link is followed: what was unpacked would be a directory of this host. Nullopt: not there.
  Result<std::optional<Fd>> open(const std::string& digest) const;

  struct Unpacking {
    std::string name;  // in the cache
    Fd top;            // locked, for gc removes what is not
  };
  Result<Unpacking> begin(const std::string& digest) const;
  // Another may have been first with the same digest; then that one stays.
  Result<Fd> keep(const Unpacking& unpacking, const std::string& digest) const;
  Result<void> drop(const Unpacking& unpacking) const;

  // Removes what killed unpackings left, and what is not a directory; a line for each, also for what could not be removed.
  Result<std::vector<std::string>> collect_garbage() const;

 private:
  UnpackCache(std::string path, std::string what, Fd dir)
      : path_(std::move(path)), what_(std::move(what)), dir_(std::move(dir)) {}
  Result<std::string> clear_leftover(const std::string& name) const;

  std::string path_, what_;
  Fd dir_;
};

}  // namespace benchsand
