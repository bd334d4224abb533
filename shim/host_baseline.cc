#include "shim/host_baseline.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "oci/kernel_files.h"

namespace benchsand {

namespace {

Result<FileSystemSpace> space_of(const Fd& fd, const std::string& path) {
  const auto facts = TRY(sys::fstatfs(fd, path));
  return FileSystemSpace{path, static_cast<std::uint64_t>(facts.f_bfree) * static_cast<std::uint64_t>(facts.f_bsize),
                         static_cast<std::uint64_t>(facts.f_ffree)};
}

Result<std::optional<HostPressure>> host_pressure() {
  std::array<Pressure, 3> seen;
  const std::array<const char*, 3> files = {"/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io"};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto text = sys::read_file(sys::kHere, files[i]);
    // Not built, or switched off at boot (psi=0).
    if (!text && (text.error().error_number == ENOENT || text.error().error_number == EOPNOTSUPP)) return std::nullopt;
    seen[i] = TRY(parse_pressure(TRY(text), files[i]));
  }
  if (!seen[1].full_us || !seen[2].full_us) return fault("read /proc/pressure: memory or io has no line 'full'");
  return HostPressure{seen[0].some_us, *seen[1].full_us, *seen[2].full_us};
}

}  // namespace

Result<void> HostBaseline::watch(const Fd& fd, const std::string& path) {
  const dev_t device = TRY(sys::fstat(fd, path)).st_dev;
  const auto known = [&](const Watched& other) { return other.device == device; };
  if (std::none_of(file_systems_.begin(), file_systems_.end(), known)) file_systems_.push_back({&fd, path, device});
  return {};
}

Result<HostState> HostBaseline::read() const {
  HostState state;
  const std::string vmstat = "/proc/vmstat", cpu = unified_->mount + "/cpu.stat";
  const auto counters = TRY(parse_keyed(TRY(sys::read_file(sys::kHere, vmstat)), vmstat, {"oom_kill"}));
  state.oom_kills = counters.at("oom_kill");
  if (counters.contains("pswpin") && counters.contains("pswpout")) {  // a kernel without swap has neither
    state.pages_swapped_in = counters.at("pswpin");
    state.pages_swapped_out = counters.at("pswpout");
  }
  state.cpu_us =
      TRY(parse_keyed(TRY(sys::read_file(unified_->root.get(), "cpu.stat")), cpu, {"usage_usec"})).at("usage_usec");
  state.pressure = TRY(host_pressure());
  for (const auto& watched : file_systems_) state.file_systems.push_back(TRY(space_of(*watched.fd, watched.path)));
  return state;
}

Result<HostState> HostBaseline::take_all(const Fd& results, const std::string& results_path, const RunFolder& folder,
                                         const Rootfs& rootfs, const std::vector<Input>& inputs) {
  TRY_VOID(watch(results, results_path));
  TRY_VOID(watch(folder.dir(), folder.path()));
  TRY_VOID(watch(rootfs.dir, rootfs.path));
  for (const auto& input : inputs) TRY_VOID(watch(input.opened, input.source));
  return read();
}

void HostBaseline::take(const Fd& results, const std::string& results_path, const RunFolder& folder,
                        const Rootfs& rootfs, const std::vector<Input>& inputs) {
  before_ = take_all(results, results_path, folder, rootfs, inputs);
}

std::vector<std::string> HostBaseline::notices(const RunShare& run) const {
  const auto after = read();
  const auto* failed = !before_ ? &before_.error() : !after ? &after.error() : nullptr;
  if (failed) return {"host: what changed on it during the run is not known: " + failed->message};
  return host_notices(*before_, *after, run);
}

}  // namespace benchsand
