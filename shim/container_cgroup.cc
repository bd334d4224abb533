#include "shim/container_cgroup.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>

#include "oci/kernel_files.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kFrozenWithinUs = 10'000'000;

}  // namespace

Result<ContainerCgroup> ContainerCgroup::open(const std::string& run_id) {
  if (!is_run_id(run_id)) return fault("open the cgroup of a run: '" + run_id + "' is not the name of one");
  ContainerCgroup cgroup(TRY(CgroupHost::look()));
  if (!cgroup.host_.has_unified()) return fault("open the cgroup of " + run_id + ": this host has no cgroup2 tree");
  cgroup.path_ = std::string(kCgroupPrefix) + "/" + run_id + "/" + kCgroupLeaf;
  return cgroup;
}

const Hierarchy* ContainerCgroup::with(const std::string& controller) const {
  return controller.empty() ? &host_.unified() : host_.with(controller);
}

std::string ContainerCgroup::name(const std::string& controller, const std::string& file) const {
  const Hierarchy* hierarchy = with(controller);
  return (hierarchy ? hierarchy->mount : "(no " + controller + ")") + "/" + path_ + "/" + file;
}

Result<std::string> ContainerCgroup::read(const std::string& controller, const std::string& file) const {
  const Hierarchy* hierarchy = with(controller);
  if (!hierarchy) return fault("read " + file + ": this host has no cgroup controller " + controller);
  return sys::read_file(hierarchy->root.get(), path_ + "/" + file);
}

Result<std::set<pid_t>> ContainerCgroup::processes() const {
  std::set<pid_t> found;
  const std::string text = TRY(read("", "cgroup.procs"));
  for (const auto number : TRY(parse_numbers(text, name("", "cgroup.procs")))) found.insert(static_cast<pid_t>(number));
  return found;
}

Result<bool> ContainerCgroup::frozen() const {
  const std::string text = TRY(read("", "cgroup.events"));
  return TRY(parse_keyed(text, name("", "cgroup.events"), {"frozen"})).at("frozen") != 0;
}

Result<void> ContainerCgroup::freeze(bool frozen) const {
  const Hierarchy& tree = host_.unified();
  const Fd events = TRY(sys::openat(tree.root.get(), path_ + "/cgroup.events", O_RDONLY));
  TRY_VOID(sys::write_file(tree.root.get(), path_ + "/cgroup.freeze", frozen ? "1" : "0"));
  const std::string source = name("", "cgroup.events");
  const std::uint64_t deadline = sys::monotonic_us() + kFrozenWithinUs;
  for (;;) {
    const auto counters = TRY(parse_keyed(TRY(sys::reread(events, source)), source, {"frozen"}));
    if ((counters.at("frozen") != 0) == frozen) return {};
    if (sys::monotonic_us() >= deadline)
      return fault(std::string(frozen ? "pause" : "resume") + " the container: " + source + " did not change in 10 s");
    // POLLPRI when `frozen` changes.
    TRY(sys::poll_one(events, POLLPRI, deadline));
  }
}

Result<void> ContainerCgroup::kill() const {
  return sys::write_file(host_.unified().root.get(), path_ + "/cgroup.kill", "1");
}

}  // namespace benchsand
