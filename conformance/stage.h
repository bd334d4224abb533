// The folder in which the suite works: the root file system with the probe, the probe alone, the planted file, and the results of each sandbox. It is
// gone with the suite; of one that was killed `benchsand gc` takes it away.
#pragma once

#include <optional>
#include <string>

#include "shim/sys.h"

namespace benchsand::conformance {

inline constexpr const char* kStageBase = "/run/benchsand-conformance";

class Stage {
 public:
  static Result<Stage> make();
  Stage(Stage&&) = default;
  Stage& operator=(Stage&&) = delete;
  ~Stage();

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string planted() const { return path("planted/credentials"); }
  const std::string& probe_sha256() const { return probe_sha256_; }
  // So that the folder of the planted file can be granted as an input: its place in the root file system.
  Result<void> make_place_for_planted() const;

 private:
  Stage(std::string name, Fd lock)
      : name_(std::move(name)), path_(std::string(kStageBase) + "/" + name_), lock_(std::move(lock)) {}
  Result<void> fill(const std::string& probe);

  std::string name_, path_, probe_sha256_;
  Fd lock_;
};

// Counts who opens the planted file, whatever the name by which it is reached.
class OpenWatch {
 public:
  static Result<OpenWatch> on(const std::string& file);
  Result<std::uint64_t> opened();

 private:
  Fd fanotify_;
  std::uint64_t opened_ = 0;
};

}  // namespace benchsand::conformance
