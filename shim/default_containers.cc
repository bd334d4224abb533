#include "shim/default_containers.h"

#include "oci/default_body.h"
#include "shim/host_network.h"
#include "shim/host_process.h"
#include "shim/run_folder.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kForOthers = 3'600'000'000;  // how long one waits for others to join its network
constexpr std::uint64_t kForALook = 60'000'000;

std::vector<std::string> waiting(std::uint64_t us) {
  const std::string ms = std::to_string(us / 1000);
  return {"/probe", "--deadline", ms, "sleep:" + ms};
}

}  // namespace

// One container, with the folder that tells gc whose it is, and the cgroup that bounds it.
class DefaultContainers::One {
 public:
  One(DefaultEngine& engine, const CgroupHost& cgroups, RunFolder folder)
      : engine_(engine), cgroups_(cgroups), folder_(std::move(folder)) {}
  One(const One&) = delete;
  One& operator=(const One&) = delete;
  ~One() { static_cast<void>(remove()); }  // what cannot be removed now, gc finds

  Result<void> start(DefaultEngine::Start start);
  Result<DefaultEnd> end(const DefaultOrder& order);
  // What is read of it is only told, and a network namespace of it is checked.
  Result<HostProcess> init() { return HostProcess::open(TRY(engine_.init(container_))); }
  const std::string& id() const { return container_; }
  Result<void> remove();

 private:
  Result<void> bound();

  DefaultEngine& engine_;
  const CgroupHost& cgroups_;
  RunFolder folder_;
  std::optional<RunCgroup> cgroup_;
  std::string container_;
  bool asked_for_ = false, removed_ = false;
};

Result<void> DefaultContainers::One::bound() {
  cgroup_ = TRY(RunCgroup::create(cgroups_, folder_.id()));
  TRY_VOID(cgroup_->try_limit("pids", "pids.max", std::to_string(kBoundProcesses)));
  const bool v2 = cgroups_.layout() == CgroupLayout::v2;
  return cgroup_->try_limit("memory", v2 ? "memory.max" : "memory.limit_in_bytes", std::to_string(kBoundMemory));
}

Result<void> DefaultContainers::One::start(DefaultEngine::Start start) {
  start.run_id = folder_.id();
  if (engine_.takes_parent()) {
    TRY_VOID(bound());
    start.cgroup_parent = cgroup_->outer_path();
  }
  asked_for_ = true;
  container_ = TRY(engine_.start(start));
  if (cgroup_) cgroup_->expect_leaf(engine_.leaf(container_));
  return {};
}

// Before it is removed.
Result<DefaultEnd> DefaultContainers::One::end(const DefaultOrder& order) {
  const std::uint64_t began = sys::monotonic_us();
  const bool in_time = TRY(engine_.wait(container_, order.within_us));
  const std::uint64_t ended = sys::monotonic_us();
  DefaultEnd end = TRY(engine_.end(container_, order.look_for));
  end.in_time = in_time;
  end.wall_us = ended - began;
  if (cgroup_) end.populated = TRY(cgroup_->leaf_is_populated());
  return end;
}

Result<void> DefaultContainers::One::remove() {
  if (removed_) return {};
  if (asked_for_) TRY_VOID(engine_.remove(folder_.id()));
  if (cgroup_) TRY_VOID(remove_run_cgroups(cgroups_, folder_.id()));
  TRY_VOID(folder_.remove());
  removed_ = true;
  return {};
}

DefaultContainers::DefaultContainers(std::unique_ptr<DefaultEngine> engine, CgroupHost cgroups)
    : engine_(std::move(engine)), cgroups_(std::make_unique<CgroupHost>(std::move(cgroups))) {}
DefaultContainers::DefaultContainers(DefaultContainers&&) noexcept = default;
DefaultContainers::~DefaultContainers() = default;

Result<DefaultContainers> DefaultContainers::of(std::unique_ptr<DefaultEngine> engine) {
  TRY_VOID(make_base_folders());
  return DefaultContainers(std::move(engine), TRY(CgroupHost::find()));
}

Result<std::unique_ptr<DefaultContainers::One>> DefaultContainers::start(DefaultEngine::Start start) {
  auto one = std::make_unique<One>(*engine_, *cgroups_, TRY(RunFolder::create()));
  TRY_VOID(one->start(std::move(start)));
  return one;
}

Result<DefaultNetwork> DefaultContainers::look_at_network() {
  DefaultEngine::Start wanted;
  wanted.command = waiting(kForALook);
  const auto one = TRY(start(std::move(wanted)));
  Evidence evidence;
  observe_network_at_door(TRY(one->init()), evidence);
  DefaultNetwork network;
  for (const auto& [key, text] : {std::pair{"network.links", &network.links}, {"network.routes", &network.routes}}) {
    const Observation* seen = evidence.find(key);
    if (seen == nullptr || seen->value() == nullptr)
      return fault("look at the network of a container: " + std::string(key) + " could not be read");
    *text = to_text(*seen->value());
  }
  TRY_VOID(one->remove());
  return network;
}

Result<Fd> DefaultContainers::wait_for_others() {
  DefaultEngine::Start wanted;
  wanted.command = waiting(kForOthers);
  wanted.alone = true;
  others_wait_ = TRY(start(std::move(wanted)));
  Fd theirs = TRY(TRY(others_wait_->init()).open_namespace("net"));
  const auto other = TRY(sys::fstat(theirs, "net"));
  const auto own = TRY(sys::fstatat(sys::kHere, "/proc/self/ns/net", 0));
  if (other.st_ino == own.st_ino)
    return fault("find the network namespace of a container without a network: it is the host's");
  return theirs;
}

Result<DefaultEnd> DefaultContainers::run(const DefaultOrder& order) {
  if (order.joins && !others_wait_) return fault("join a container's network: none is there to join");
  DefaultEngine::Start wanted;
  wanted.command = order.command;
  if (order.joins) wanted.joins = others_wait_->id();
  const auto one = TRY(start(std::move(wanted)));
  auto end = TRY(one->end(order));
  TRY_VOID(one->remove());
  return end;
}

}  // namespace benchsand
