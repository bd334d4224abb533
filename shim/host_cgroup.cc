#include "shim/host_cgroup.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "oci/mountinfo.h"

namespace benchsand {

bool is_run_id(const std::string& text) {
  return text.size() == 25 && text[0] == 'r' && text.find_first_not_of("0123456789abcdef", 1) == std::string::npos;
}

namespace {

constexpr std::uint64_t kEmptyWithinUs = 10'000'000;

// A v1 mount names its controllers among the super block's options, beside flags like "rw" and "xattr".
std::set<std::string> v1_controllers(const MountEntry& mount) {
  static const std::set<std::string> known = {"memory",  "pids",     "cpu",   "cpuacct", "cpuset",
                                              "devices", "freezer",  "blkio", "hugetlb", "perf_event",
                                              "net_cls", "net_prio", "rdma",  "misc"};
  std::set<std::string> found;
  for (const auto& option : mount.super_options)
    if (known.contains(option) || option.starts_with("name=")) found.insert(option);
  return found;
}

std::set<std::string> words(const std::string& text) {
  std::set<std::string> found;
  std::string word;
  for (const char c : text) {
    if (c != ' ' && c != '\n') {
      word += c;
      continue;
    }
    if (!word.empty()) found.insert(word);
    word.clear();
  }
  return found;
}

Result<Hierarchy> open_hierarchy(const MountEntry& mount) {
  Hierarchy hierarchy;
  hierarchy.unified = mount.type == "cgroup2";
  hierarchy.mount = mount.target;
  hierarchy.root = TRY(sys::open_directory(sys::kHere, mount.target));
  hierarchy.controllers = hierarchy.unified ? words(TRY(sys::read_file(hierarchy.root.get(), "cgroup.controllers")))
                                            : v1_controllers(mount);
  return hierarchy;
}

std::string missing_controllers(const CgroupHost& host) {
  std::string missing;
  for (const char* controller : {"memory", "pids", "cpu"})
    if (!host.with(controller)) missing += std::string(missing.empty() ? "" : ", ") + controller;
  return missing;
}

// Both levels; another run may remove the empty prefix between our two calls, so try again a few times.
Result<Fd> make_outer(const Hierarchy& hierarchy, const std::string& id) {
  const std::string path = std::string(kCgroupPrefix) + "/" + id;
  for (int attempt = 0;; ++attempt) {
    const auto prefix = sys::mkdirat(hierarchy.root.get(), kCgroupPrefix, 0755);
    if (!prefix && prefix.error().error_number != EEXIST) return std::unexpected(prefix.error());
    const auto outer = sys::mkdirat(hierarchy.root.get(), path, 0755);
    if (outer) break;
    if (outer.error().error_number != ENOENT || attempt == 100) return std::unexpected(outer.error());
  }
  return sys::open_directory(hierarchy.root.get(), path);
}

Result<void> hand_down(int dir, const std::vector<std::string>& controllers) {
  const auto enabled = words(TRY(sys::read_file(dir, "cgroup.subtree_control")));
  std::string missing;
  for (const auto& controller : controllers)
    if (!enabled.contains(controller)) missing += (missing.empty() ? "+" : " +") + controller;
  return missing.empty() ? Result<void>() : sys::write_file(dir, "cgroup.subtree_control", missing);
}

// v2: a controller's files exist in a cgroup only when every ancestor hands the controller down.
Result<void> hand_down_controllers(const Hierarchy& hierarchy, const Fd& outer, bool cpuset) {
  const Fd prefix = TRY(sys::open_directory(hierarchy.root.get(), kCgroupPrefix));
  std::vector<std::string> required = {"memory", "pids", "cpu"};
  if (cpuset) required.push_back("cpuset");
  for (const int dir : {hierarchy.root.get(), prefix.get(), outer.get()}) TRY_VOID(hand_down(dir, required));
  // Only counts. Where it cannot be had, the record says so.
  if (!hierarchy.controllers.contains("io")) return {};
  for (const int dir : {hierarchy.root.get(), prefix.get(), outer.get()})
    if (!hand_down(dir, {"io"})) return {};
  return {};
}

// Another process may remove a cgroup between any two of our calls (a gc, the end of its own run): then it is empty.
bool is_gone(const Error& error) {
  return error.error_number == ENOENT || error.error_number == ENODEV;
}

Result<bool> is_populated(int dir, const std::string& source) {
  const auto text = sys::read_file(dir, "cgroup.events");
  if (!text && is_gone(text.error())) return false;
  if (!text) return std::unexpected(text.error());
  return TRY(parse_keyed(*text, source, {"populated"})).at("populated") != 0;
}

// What a v1 freezer holds does not die before it is thawed (docker pause); in a cgroup2 tree it does. To be called after the kill,
// so that nothing runs again. The delegate freezes the leaf, somebody else may freeze the outer cgroup.
Result<void> thaw(int outer, const std::string& leaf) {
  for (const std::string& place : {std::string(), leaf + "/"}) {
    const auto thawed = sys::write_file(outer, place + "freezer.state", "THAWED");
    if (!thawed && !is_gone(thawed.error())) return thawed;
  }
  return {};
}

// Whatever the leaf is called: of an engine's container it is the engine's name.
Result<void> thaw_all(int outer) {
  TRY_VOID(thaw(outer, kCgroupLeaf));
  if (TRY(sys::exists(outer, kCgroupLeaf))) return {};
  for (const auto& entry : TRY(sys::list_directory(outer, ".")))
    if (S_ISDIR(TRY(sys::fstatat(outer, entry, AT_SYMLINK_NOFOLLOW)).st_mode)) TRY_VOID(thaw(outer, entry));
  return {};
}

bool can_freeze(const Hierarchy& hierarchy) {
  return !hierarchy.unified && hierarchy.controllers.contains("freezer");
}

// cgroup.events notifies by POLLPRI when `populated` changes.
Result<void> wait_until_empty(const Fd& outer, const std::string& where, std::uint64_t deadline_us) {
  const auto events = sys::openat(outer.get(), "cgroup.events", O_RDONLY);
  if (!events) return is_gone(events.error()) ? Result<void>() : std::unexpected(events.error());
  for (;;) {
    const auto text = sys::reread(*events, where);
    if (!text) return is_gone(text.error()) ? Result<void>() : std::unexpected(text.error());
    if (TRY(parse_keyed(*text, where, {"populated"})).at("populated") == 0) return {};
    if (sys::monotonic_us() >= deadline_us) return fault("wait for " + where + " populated 0: still populated");
    TRY(sys::poll_one(*events, POLLPRI, std::min(deadline_us, sys::monotonic_us() + 20'000)));
  }
}

// Cgroups cannot be removed while they have children; files in them go by themselves. Nearly always the leaf is the only
// child, and listing a cgroup's files costs more than all the rest of a teardown.
Result<void> remove_below(int dir, const std::string& name) {
  const auto leaf = sys::unlinkat(dir, name + "/" + kCgroupLeaf, AT_REMOVEDIR);
  if (!leaf && leaf.error().error_number != ENOENT && leaf.error().error_number != EBUSY) return leaf;
  const auto removed = sys::unlinkat(dir, name, AT_REMOVEDIR);
  if (removed || removed.error().error_number == ENOENT) return {};
  if (removed.error().error_number != EBUSY) return removed;
  const auto inside = sys::open_directory(dir, name);
  if (!inside) return inside.error().error_number == ENOENT ? Result<void>() : std::unexpected(inside.error());
  for (const auto& entry : TRY(sys::list_directory(inside->get(), ".")))
    if (S_ISDIR(TRY(sys::fstatat(inside->get(), entry, AT_SYMLINK_NOFOLLOW)).st_mode))
      TRY_VOID(remove_below(inside->get(), entry));
  return sys::unlinkat(dir, name, AT_REMOVEDIR);
}

// EBUSY right after the last process died is the kernel finishing its exit; it passes within milliseconds.
Result<void> remove_with_patience(int dir, const std::string& name) {
  const std::uint64_t deadline = sys::monotonic_us() + kEmptyWithinUs;
  for (;;) {
    auto removed = remove_below(dir, name);
    if (removed || removed.error().error_number != EBUSY || sys::monotonic_us() >= deadline) return removed;
    const timespec pause = {0, 200'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace

Result<CgroupHost> CgroupHost::look() {
  const auto mounts =
      TRY(parse_mountinfo(TRY(sys::read_file(sys::kHere, "/proc/self/mountinfo")), "/proc/self/mountinfo"));
  CgroupHost host;
  std::set<std::string> devices;
  for (const auto& mount : mounts) {
    if (mount.type != "cgroup" && mount.type != "cgroup2") continue;
    if (mount.root != "/" || !devices.insert(mount.device).second) continue;  // a part, or the same one again
    host.hierarchies_.push_back(TRY(open_hierarchy(mount)));
    if (!host.hierarchies_.back().unified) continue;
    host.unified_ = host.hierarchies_.size() - 1;
    host.have_unified_ = true;
  }
  host.layout_ = host.hierarchies_.size() == 1 ? CgroupLayout::v2 : CgroupLayout::hybrid;
  return host;
}

Result<CgroupHost> CgroupHost::find() {
  auto host = TRY(look());
  if (!host.have_unified_)
    return fault(
        "find a cgroup2 hierarchy in /proc/self/mountinfo: none is mounted; benchsand needs cgroup.kill and "
        "cgroup.events: mount it (mount -t cgroup2 none /sys/fs/cgroup/unified) or boot with cgroup v2");
  if (const std::string missing = missing_controllers(host); !missing.empty())
    return fault("find cgroup controllers: this host has no " + missing +
                 "; enable them (kernel command line cgroup_enable=memory, or a full cgroup mount in this container)");
  return host;
}

const Hierarchy* CgroupHost::with(const std::string& controller) const {
  // v1 first: on a hybrid host a controller that stands in both lists is bound to v1.
  for (const bool unified : {false, true})
    for (const auto& hierarchy : hierarchies_)
      if (hierarchy.unified == unified && hierarchy.controllers.contains(controller)) return &hierarchy;
  return nullptr;
}

Result<std::vector<std::string>> CgroupHost::run_ids() const {
  std::set<std::string> ids;
  for (const auto& hierarchy : hierarchies_) {
    const auto entries = sys::list_directory(hierarchy.root.get(), kCgroupPrefix);
    if (!entries && is_gone(entries.error())) continue;
    if (!entries) return std::unexpected(entries.error());
    for (const auto& entry : *entries)
      if (is_run_id(entry)) ids.insert(entry);
  }
  return std::vector<std::string>(ids.begin(), ids.end());
}

Result<bool> run_cgroup_populated(const CgroupHost& host, const std::string& id) {
  const std::string path = std::string(kCgroupPrefix) + "/" + id;
  const auto outer = sys::open_directory(host.unified().root.get(), path);
  if (!outer && outer.error().error_number == ENOENT) return false;
  if (!outer) return std::unexpected(outer.error());
  return is_populated(outer->get(), host.unified().mount + "/" + path + "/cgroup.events");
}

Result<void> remove_run_cgroups(const CgroupHost& host, const std::string& id) {
  if (!is_run_id(id)) return fault("remove the cgroup of run '" + id + "': not a run id");
  const std::string path = std::string(kCgroupPrefix) + "/" + id;
  const Hierarchy& unified = host.unified();
  const auto outer = sys::open_directory(unified.root.get(), path);
  if (!outer && !is_gone(outer.error())) return std::unexpected(outer.error());
  if (outer) {
    const std::string where = unified.mount + "/" + path + "/cgroup.events";
    const auto killed = sys::write_file(outer->get(), "cgroup.kill", "1");
    if (!killed && !is_gone(killed.error())) return killed;
    for (const auto& hierarchy : host.hierarchies()) {
      if (!can_freeze(hierarchy)) continue;
      const auto frozen = sys::open_directory(hierarchy.root.get(), path);
      if (!frozen && !is_gone(frozen.error())) return std::unexpected(frozen.error());
      if (frozen) TRY_VOID(thaw_all(frozen->get()));
    }
    TRY_VOID(wait_until_empty(*outer, where, sys::monotonic_us() + kEmptyWithinUs));
  }
  for (const auto& hierarchy : host.hierarchies()) {
    TRY_VOID(remove_with_patience(hierarchy.root.get(), path));
    // The prefix stays while other runs are in it.
    const auto prefix = sys::unlinkat(hierarchy.root.get(), kCgroupPrefix, AT_REMOVEDIR);
    if (!prefix && prefix.error().error_number != ENOTEMPTY && prefix.error().error_number != EBUSY &&
        prefix.error().error_number != ENOENT)
      return prefix;
  }
  return {};
}

Result<RunCgroup> RunCgroup::create(const CgroupHost& host, const std::string& id, bool cpuset) {
  if (!is_run_id(id)) return fault("create the cgroup of run '" + id + "': not a run id");
  if (cpuset && !host.with("cpuset"))
    return fault(
        "keep the run on the processors of the profile's cpuset: this host has no cpuset controller; mount or enable "
        "it, "
        "or leave cpuset out of the profile");
  RunCgroup cgroup;
  cgroup.layout_ = host.layout();
  cgroup.id_ = id;
  for (const auto& hierarchy : host.hierarchies()) {
    auto outer = make_outer(hierarchy, id);
    if (!outer)
      return fault(
          "make a cgroup below " + hierarchy.mount + ": " + outer.error().message +
          "; benchsand needs a writable cgroup file system (in a container: --privileged, or run it on the host)");
    if (hierarchy.unified && host.layout() == CgroupLayout::v2)
      TRY_VOID(hand_down_controllers(hierarchy, *outer, cpuset));
    cgroup.places_.push_back({&hierarchy, std::move(*outer), Fd()});
  }
  return cgroup;
}

Result<bool> RunCgroup::frozen() const {
  for (const auto& at : places_) {
    const bool unified = at.hierarchy->unified;
    if (!unified && !can_freeze(*at.hierarchy)) continue;
    const std::string file = leaf_ + (unified ? "/cgroup.events" : "/freezer.state");
    const auto text = sys::read_file(at.outer.get(), file);
    if (!text && is_gone(text.error())) continue;
    if (!text) return std::unexpected(text.error());
    if (unified ? TRY(parse_keyed(*text, name(at, file), {"frozen"})).at("frozen") != 0 : *text != "THAWED\n")
      return true;
  }
  return false;
}

Result<void> RunCgroup::kill() const {
  const std::string file = is_engines_ ? leaf_ + "/cgroup.kill" : "cgroup.kill";
  const auto killed = sys::write_file(unified().outer.get(), file, "1");
  for (const auto& at : places_)
    if (can_freeze(*at.hierarchy)) TRY_VOID(thaw(at.outer.get(), leaf_));
  if (is_engines_ && !killed && is_gone(killed.error())) return {};  // the engine has removed it already
  return killed;
}

Result<void> RunCgroup::try_limit(const std::string& controller, const std::string& file,
                                  const std::string& value) const {
  const Place* at = place(controller);
  if (!at) return fault("find the " + controller + " controller: not in any hierarchy of this run");
  TRY_VOID(sys::write_file(at->outer.get(), file, value));
  const std::string text = TRY(sys::read_file(at->outer.get(), file));
  if (text == value + "\n") return {};
  return fault("set " + name(*at, file) + " to " + value + ": it reads " + text.substr(0, text.find('\n')));
}

Result<void> RunCgroup::wait_empty(std::uint64_t deadline_us) const {
  const Fd& place = is_engines_ ? unified().leaf : unified().outer;
  return wait_until_empty(place, name(unified(), "cgroup.events"), deadline_us);
}

std::string RunCgroup::outer_path() const {
  return std::string("/") + kCgroupPrefix + "/" + id_;
}

std::string RunCgroup::leaf_path() const {
  return outer_path() + "/" + leaf_;
}

void RunCgroup::expect_leaf(std::string name) {
  leaf_ = std::move(name);
  is_engines_ = true;
}

Result<pid_t> RunCgroup::lone_process() const {
  const std::string source = unified().hierarchy->mount + leaf_path() + "/cgroup.procs";
  const std::string text = TRY(sys::read_file(unified().outer.get(), leaf_ + "/cgroup.procs"));
  if (std::count(text.begin(), text.end(), '\n') != 1)
    return fault("find the container's process: " + source + " has " +
                 std::to_string(std::count(text.begin(), text.end(), '\n')) + " where one is due");
  return static_cast<pid_t>(TRY(parse_counter(text, source)));
}

Result<bool> RunCgroup::leaf_is_populated() const {
  const auto leaf = sys::open_directory(unified().outer.get(), leaf_);
  if (!leaf && is_gone(leaf.error())) return false;
  if (!leaf) return std::unexpected(leaf.error());
  return is_populated(leaf->get(), unified().hierarchy->mount + leaf_path() + "/cgroup.events");
}

Result<void> RunCgroup::end_whole_on_oom() const {
  if (layout_ != CgroupLayout::v2) return {};
  return sys::write_file(unified().outer.get(), leaf_ + "/memory.oom.group", "1");
}

}  // namespace benchsand
