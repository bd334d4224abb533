// The one writable directory of an engine's container. The engine's own directory is never mounted inside: what it holds is copied
// into the run's tmpfs before the start, and what may be collected is written back after the end, when nobody can change it any more.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shim/collect.h"
#include "shim/output_fs.h"

namespace benchsand {

class ContainerOutput {
 public:
  // The directory that the user of the engine gave.
  static Result<ContainerOutput> of_user(const std::string& directory);
  // `path` in the container's own layer, made where it is not there, so that the engine's `cp` finds it. `rootfs`: as the engine
  // mounted it.
  static Result<ContainerOutput> in_layer(const Fd& rootfs, const std::string& path);

  // Regular files, directories and symbolic links, as the candidate's. Kind usage: more than the policy's disk holds.
  Result<void> seed(const OutputFs& output, const Policy& policy);
  const std::vector<std::string>& notices() const { return notices_; }  // what was left out, and why

  // Collects, and writes what is new or changed. On an error nothing is replaced that is not whole. What the candidate put
  // where something else than a file stands here is refused, as what cannot be collected is.
  Result<Collected> write_back(const OutputFs& output, const CollectCaps& caps) const;

 private:
  struct Seeded {
    std::string sha256;
    mode_t mode = 0;
  };
  friend class Seeder;
  ContainerOutput(Fd directory, std::string name) : directory_(std::move(directory)), name_(std::move(name)) {}
  Result<Collected> write_back_by(const OutputFs& output, const CollectCaps& caps, const std::string& staging) const;

  Fd directory_;
  std::string name_;
  std::map<std::string, Seeded> seeded_;
  std::vector<std::string> notices_;
};

}  // namespace benchsand
