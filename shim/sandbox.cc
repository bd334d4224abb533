#include "shim/sandbox.h"

#include <sys/mount.h>

#include <csignal>

#include "oci/kernel_files.h"
#include "oci/runtime_error.h"
#include "oci/sha256.h"
#include "shim/new_mount.h"
#include "shim/place_layer.h"
#include "shim/subprocess.h"

namespace benchsand {

namespace {

// The delegate sees the run's own devices there, so what it binds over a masked path is not the host's null device.
constexpr const char* kDevices = "/dev";

const std::string kOutputPlace = std::string(kMountBase) + "/output";
const std::string kNetworkPlace = std::string(kMountBase) + "/network-namespace";
const std::string kUserPlace = std::string(kMountBase) + "/user-namespace";

std::string input_place(std::size_t index) {
  return std::string(kMountBase) + "/input-" + std::to_string(index);
}

}  // namespace

Result<void> Sandbox::make_run_folder(const std::string& id) {
  remains_.folder = TRY(id.empty() ? RunFolder::create() : RunFolder::create(id));
  facts_.id = remains_.folder->id();
  facts_.created = sys::utc_now();
  facts_.delegate = host_.delegate.facts;
  return {};
}

Result<void> Sandbox::take_host_ids() {
  if (policy_.user_namespace == UserNamespace::own) {
    host_ids_ = TRY(HostIdSlot::take());
    policy_.host_ids = host_ids_->ids();
    limits_at_the_door_ = facts_.delegate.name == "runc" && !TRY(may_set_limits_of_others());
    user_namespace_ = TRY(make_user_namespace(policy_));
  }
  rules_ = wall_rules(policy_, host_.facts);
  return {};
}

// Everything that the container is made of, from what was opened: no name of the host is looked up again.
Result<void> Sandbox::make_mounts() {
  const Fd empty = TRY(remains_.folder->empty());
  const Fd places = rootfs_->to_lay_over.empty() ? Fd() : TRY(remains_.folder->made_layer());
  TRY_VOID(fill_place_layer(*rootfs_, places));
  root_mount_ = is_down(policy_, Relaxation::rootfs)
                    ? TRY(writable_mount(rootfs_->dir, rootfs_->path, places, remains_.folder->dir()))
                    : TRY(private_mount(rootfs_->dir, rootfs_->path, policy_.rootfs_mount, empty, places));
  made_.rootfs_identity = root_mount_->identity;
  for (const auto& input : inputs_) {
    input_mounts_.push_back(TRY(private_mount(input.opened, input.source, policy_.rootfs_mount, empty)));
    made_.inputs.emplace_back(input.target, input_mounts_.back().identity);
  }
  devices_ = TRY(device_mount(policy_.terminal, is_down(policy_, Relaxation::devices)));
  output_ = TRY(OutputFs::create(policy_));
  made_.output_identity = TRY(output_->identity());
  return make_places();
}

// A tmpfs over kMountBase with a place for each mount.
Result<void> Sandbox::make_places() {
  NewMount tmpfs = TRY(NewMount::open("tmpfs"));
  TRY_VOID(tmpfs.set("mode", "0711"));
  TRY_VOID(tmpfs.set("size", "64k"));
  places_ = TRY(tmpfs.create(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  const auto name = [](const std::string& place) { return place.substr(std::string(kMountBase).size() + 1); };
  TRY_VOID(sys::mkdirat(places_.get(), name(kRootfsPlace), 0700));
  TRY_VOID(sys::mkdirat(places_.get(), name(kOutputPlace), 0700));
  if (user_namespace_) TRY_VOID(sys::create_file(places_.get(), name(kUserPlace), "", 0644));
  if (is_down(policy_, Relaxation::network_namespace)) {
    if (hooks_.network_namespace == nullptr) return fault("take down the network namespace: there is no other one");
    network_mount_ = TRY(mount_of_namespace(*hooks_.network_namespace, "the network namespace of the suite"));
    TRY_VOID(sys::create_file(places_.get(), name(kNetworkPlace), "", 0644));
  }
  for (std::size_t i = 0; i < input_mounts_.size(); ++i)
    TRY_VOID(input_mounts_[i].directory ? sys::mkdirat(places_.get(), name(input_place(i)), 0700)
                                        : sys::create_file(places_.get(), name(input_place(i)), "", 0600));
  return {};
}

// Handed over by descriptor, and attached where only the delegate sees it; the places first.
std::vector<Attachment> Sandbox::attachments() const {
  std::vector<Attachment> list = {{&devices_, kDevices},
                                  {&places_, kMountBase},
                                  {&root_mount_->mount, kRootfsPlace},
                                  {&output_->mount(), kOutputPlace}};
  for (std::size_t i = 0; i < input_mounts_.size(); ++i) list.push_back({&input_mounts_[i].mount, input_place(i)});
  if (user_namespace_) list.push_back({&user_namespace_->mount, kUserPlace});
  if (network_mount_) list.push_back({&network_mount_, kNetworkPlace});
  return list;
}

Result<void> Sandbox::make_listener() {
  wall_timer_ = TRY(sys::timerfd());
  listener_ = TRY(SeccompListener::create(remains_.folder->path("listener")));
  if (!policy_.terminal) made_.streams = {TRY(identity_of_fd(stdin_)), TRY(out_->identity()), TRY(err_->identity())};
  return {};
}

BundlePlaces Sandbox::bundle_places() const {
  BundlePlaces places;
  places.rootfs = kRootfsPlace;
  places.output = kOutputPlace;
  places.cgroups_path = remains_.cgroup->leaf_path();
  places.listener = remains_.folder->path("listener");
  places.swap_file_exists = remains_.cgroup->has_swap_file();
  places.devices = kDevices;
  if (user_namespace_) places.user_namespace = kUserPlace;
  if (network_mount_) places.network_namespace = kNetworkPlace;
  places.limits_at_the_door = limits_at_the_door_;
  for (std::size_t i = 0; i < inputs_.size(); ++i) places.inputs.push_back(input_place(i) + input_mounts_[i].inside);
  return places;
}

Result<void> Sandbox::write_bundle(const std::string& config) {
  facts_.config_sha256 = sha256_hex(config);
  evidence_.set("evidence.config_sha256", facts_.config_sha256, "config.json as written");
  evidence_.set("evidence.taken_down", walls_taken_down(policy_), "the policy, as only a test can change it");
  evidence_.set("evidence.delegate_sha256", facts_.delegate.sha256, host_.delegate.path);
  return sys::create_file(remains_.folder->dir().get(), "config.json", config, 0600);
}

Result<void> Sandbox::accept_listener() {
  return take_notify(listener_->accept(facts_.id, sys::monotonic_us() + kStartWithinUs));
}

Result<void> Sandbox::take_notify(Result<SeccompNotify> notify) {
  if (!notify) return delegate_failed(notify.error().message);
  notify_ = std::move(*notify);
  if (policy_.seccomp.learn) notify_.learn();
  return {};
}

// The delegate's own words say more than what was seen of its end.
std::unexpected<Error> Sandbox::delegate_failed(const std::string& seen) {
  const auto ended = remains_.delegate->wait(sys::monotonic_us() + kEmptyWithinUs);
  const std::string words = ended ? last_words(remains_.folder->path("delegate.log")) : "";
  const std::string said = words.empty() ? seen : words;
  return fault("start the container with " + facts_.delegate.name + ": " + said +
               (is_of_the_program(said) ? program_cure(policy_.env) : ""));
}

}  // namespace benchsand
