#include "shim/container_state.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <filesystem>

#include "oci/kernel_files.h"
#include "oci/runtime_error.h"
#include "oci/sha256.h"
#include "shim/container_cgroup.h"
#include "shim/run_folder.h"

namespace benchsand {

namespace {

constexpr const char* kStateFile = "state.json";
constexpr std::size_t kKeyLength = 32;
constexpr int kFormat = 1;

std::string folder_of(const std::string& root, const std::string& id) {
  return std::string(kContainerBase) + "/" + sha256_hex(canonical_root(root) + '\0' + id).substr(0, kKeyLength);
}

bool is_key(const std::string& name) {
  return name.size() == kKeyLength && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string text_of(const ContainerState& state) {
  const nlohmann::json document = {{"benchsand-container", kFormat},
                                   {"root", canonical_root(state.root)},
                                   {"id", state.id},
                                   {"run_id", state.run_id},
                                   {"bundle", state.bundle},
                                   {"rootfs", state.rootfs},
                                   {"delegate", state.delegate},
                                   {"profile", state.profile},
                                   {"oci_version", state.oci_version},
                                   {"created", state.created},
                                   {"pid", state.pid},
                                   {"pid_start_time", state.pid_start_time},
                                   {"monitor", state.monitor},
                                   {"monitor_start_time", state.monitor_start_time},
                                   {"annotations", state.annotations}};
  return document.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<ContainerState> state_of(const std::string& text, const std::string& path) {
  try {
    const auto document = nlohmann::json::parse(text);
    ContainerState state;
    if (document.at("benchsand-container") != kFormat) return fault("read " + path + ": not of this version");
    document.at("root").get_to(state.root);
    document.at("id").get_to(state.id);
    document.at("run_id").get_to(state.run_id);
    document.at("bundle").get_to(state.bundle);
    document.at("rootfs").get_to(state.rootfs);
    document.at("delegate").get_to(state.delegate);
    document.at("profile").get_to(state.profile);
    document.at("oci_version").get_to(state.oci_version);
    document.at("created").get_to(state.created);
    document.at("pid").get_to(state.pid);
    document.at("pid_start_time").get_to(state.pid_start_time);
    document.at("monitor").get_to(state.monitor);
    document.at("monitor_start_time").get_to(state.monitor_start_time);
    document.at("annotations").get_to(state.annotations);
    return state;
  } catch (const nlohmann::json::exception& error) {
    return fault("read " + path + ": it is not the state of a container (" + error.what() + ")");
  }
}

Result<std::optional<ContainerState>> read_state(const std::string& folder) {
  const std::string path = folder + "/" + kStateFile;
  const auto text = sys::read_file(sys::kHere, path);
  if (!text && text.error().error_number == ENOENT) return std::nullopt;
  if (!text) return std::unexpected(text.error());
  return TRY(state_of(*text, path));
}

// Shared by those who make or take away a folder under another name; alone, one knows that whoever left such a folder is dead.
Result<Fd> lock_temporary(bool alone) {
  const std::string path = std::string(kRunBase) + "/.containers";
  Fd lock = TRY(sys::openat(sys::kHere, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY_VOID(sys::flock(lock, path, alone));
  return lock;
}

// Two short names of one run each: what is made, and what is being taken away.
Result<std::string> temporary_folder() {
  return std::string(kContainerBase) + "/." + TRY(sys::random_hex(12));
}

}  // namespace

std::string canonical_root(const std::string& root) {
  if (root.empty()) return kDefaultRoot;
  std::string path = std::filesystem::path(root).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string unfinished_record_of(const ContainerState& state) {
  return folder_of(state.root, state.id) + "/" + kUnfinishedRecord;
}

Result<void> claim_container(const ContainerState& state) {
  TRY_VOID(make_base_folders());
  const Fd lock = TRY(lock_temporary(false));
  const std::string folder = folder_of(state.root, state.id), unnamed = TRY(temporary_folder());
  TRY_VOID(sys::mkdirat(sys::kHere, unnamed, 0700));
  auto claimed = sys::create_file(sys::kHere, unnamed + "/" + kStateFile, text_of(state), 0600);
  if (claimed) claimed = sys::renameat(sys::kHere, unnamed, folder);
  if (claimed) return {};
  static_cast<void>(sys::remove_tree(sys::kHere, unnamed));  // the first error is the one to be told
  if (claimed.error().error_number == EEXIST)
    return usage("make the container: a container with the id " + state.id + " already exists");
  return claimed;
}

Result<std::optional<ContainerState>> find_container(const std::string& root, const std::string& id) {
  const std::string folder = folder_of(root, id);
  auto state = TRY(read_state(folder));
  if (state && (state->root != canonical_root(root) || state->id != id))
    return fault("read " + folder + ": it speaks of another container");
  return state;
}

Result<ContainerState> require_container(const std::string& root, const std::string& id) {
  auto state = TRY(find_container(root, id));
  if (!state) return usage(unknown_container(id));
  return std::move(*state);
}

Result<void> update_container(const ContainerState& state) {
  const std::string folder = folder_of(state.root, state.id);
  if (!TRY(sys::exists(sys::kHere, folder))) return usage(unknown_container(state.id));
  return sys::replace_file(folder + "/" + kStateFile, text_of(state), 0600);
}

Result<void> remove_container(const std::string& root, const std::string& id) {
  const std::string folder = folder_of(root, id), unnamed = TRY(temporary_folder());
  if (!TRY(sys::exists(sys::kHere, folder))) return {};
  const Fd lock = TRY(lock_temporary(false));
  const auto renamed = sys::renameat(sys::kHere, folder, unnamed);
  if (!renamed && renamed.error().error_number == ENOENT) return {};
  if (!renamed) return renamed;
  return sys::remove_tree(sys::kHere, unnamed);
}

Result<std::uint64_t> remove_temporary_containers() {
  std::uint64_t removed = 0;
  if (!TRY(sys::exists(sys::kHere, kContainerBase))) return removed;
  const Fd lock = TRY(lock_temporary(true));
  for (const auto& name : TRY(sys::list_directory(sys::kHere, kContainerBase))) {
    if (!name.starts_with('.')) continue;
    TRY_VOID(sys::remove_tree(sys::kHere, std::string(kContainerBase) + "/" + name));
    ++removed;
  }
  return removed;
}

Result<std::vector<ContainerState>> all_containers() {
  std::vector<ContainerState> states;
  if (!TRY(sys::exists(sys::kHere, kContainerBase))) return states;
  for (const auto& name : TRY(sys::list_directory(sys::kHere, kContainerBase))) {
    if (!is_key(name)) continue;
    // Gone since: another call removed it.
    if (auto state = TRY(read_state(std::string(kContainerBase) + "/" + name))) states.push_back(std::move(*state));
  }
  return states;
}

Result<std::vector<ContainerState>> list_containers(const std::string& root) {
  std::vector<ContainerState> states = TRY(all_containers());
  std::erase_if(states, [&](const ContainerState& state) { return state.root != canonical_root(root); });
  return states;
}

Result<std::uint64_t> start_time_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  return TRY(parse_process_stat(TRY(sys::read_file(sys::kHere, path)), path)).start_time;
}

Result<void> wait_for_monitor(const ContainerState& state, std::uint64_t deadline_us) {
  const auto monitor = sys::pidfd_open(state.monitor);
  if (!monitor && monitor.error().error_number == ESRCH) return {};
  if (!monitor) return std::unexpected(monitor.error());
  const auto started = start_time_of(state.monitor);
  if (!started || *started != state.monitor_start_time) return {};  // the number is another process's now
  if (TRY(sys::poll_one(*monitor, POLLIN, deadline_us)) == 0)
    return fault("wait for the monitor of container " + state.id + ": it has not ended in time");
  return {};
}

std::string container_status_text(ContainerStatus status) {
  switch (status) {
    case ContainerStatus::created:
      return "created";
    case ContainerStatus::running:
      return "running";
    case ContainerStatus::paused:
      return "paused";
    case ContainerStatus::stopped:
      return "stopped";
  }
  return "stopped";
}

namespace {

// A zombie has ended: whoever holds it back only reads what it left.
Result<bool> init_is_alive(const ContainerState& state) {
  if (state.pid <= 0) return false;
  const std::string path = "/proc/" + std::to_string(state.pid) + "/stat";
  const auto text = sys::read_file(sys::kHere, path);
  if (!text && (text.error().error_number == ENOENT || text.error().error_number == ESRCH)) return false;
  if (!text) return std::unexpected(text.error());
  const auto stat = TRY(parse_process_stat(*text, path));
  return stat.start_time == state.pid_start_time && stat.state != 'Z' && stat.state != 'X';
}

}  // namespace

Result<ContainerStatus> container_status(const ContainerState& state) {
  if (!TRY(init_is_alive(state))) return ContainerStatus::stopped;
  // Both delegates keep this FIFO in the container's state from `create` until `start` has opened it.
  if (TRY(sys::exists(sys::kHere, delegate_state(state.delegate) + "/" + state.run_id + "/exec.fifo")))
    return ContainerStatus::created;
  const auto cgroup = TRY(ContainerCgroup::open(state.run_id));
  return TRY(cgroup.frozen()) ? ContainerStatus::paused : ContainerStatus::running;
}

}  // namespace benchsand
