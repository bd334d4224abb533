#include <cerrno>
#include <filesystem>
#include <system_error>

#include "shim/result_folder.h"
#include "shim/rootfs.h"

namespace benchsand {

namespace {

// What the candidate reads there; empty when it is none of the run's.
Result<std::string> seen_inside(const struct stat& facts, const Rootfs& rootfs, const std::vector<Input>& inputs) {
  const auto is = [&](const struct stat& other) {
    return facts.st_dev == other.st_dev && facts.st_ino == other.st_ino;
  };
  if (is(TRY(sys::fstat(rootfs.dir, rootfs.path)))) return "the rootfs " + rootfs.path;
  for (const auto& input : inputs)
    if (is(TRY(sys::fstat(input.opened, input.source)))) return "the input " + input.source;
  return std::string();
}

}  // namespace

Result<void> require_results_apart(const std::string& results, const Rootfs& rootfs, const std::vector<Input>& inputs) {
  const auto unusable = [&](const std::string& why) {
    return usage("keep results in '" + results + "': " + why + "; choose another place with --out");
  };
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(results, failed);
  if (failed) return unusable(failed.message());
  auto place = std::filesystem::weakly_canonical(absolute, failed);
  if (failed) return unusable(failed.message());
  for (;; place = place.parent_path()) {
    const auto facts = sys::fstatat(sys::kHere, place.string(), 0);
    if (facts) {
      const std::string seen = TRY(seen_inside(*facts, rootfs, inputs));
      if (!seen.empty()) return unusable("it lies in " + seen + ", where the next candidate would read them");
    } else if (facts.error().error_number != ENOENT && facts.error().error_number != ENOTDIR) {
      return unusable(facts.error().message);
    }
    if (place == place.root_path()) return {};
  }
}

}  // namespace benchsand
