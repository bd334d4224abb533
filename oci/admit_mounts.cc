#include <algorithm>
#include <charconv>

#include "oci/admit_rules.h"
#include "oci/units.h"
#include "oci/yaml_tree.h"

namespace benchsand::admission {

using nlohmann::json;

namespace {

struct Mount {
  std::string field;   // pointer
  std::string target;  // normal
  std::string source;  // absolute and normal, of a bind
  std::string type;
  std::vector<std::string> options;

  bool has(std::string_view option) const { return std::find(options.begin(), options.end(), option) != options.end(); }
  bool is_bind() const { return type == "bind" || has("bind") || has("rbind"); }
  bool read_only() const { return has("ro") || has("rro"); }
};

Mount read(const json& entry, std::size_t index, const std::string& bundle) {
  const auto text = [&](const char* key) {
    return entry.contains(key) ? entry[key].get<std::string>() : std::string();
  };
  Mount mount{"/mounts/" + std::to_string(index), text("destination"), text("source"), text("type"), {}};
  // Relative targets are of the root file system, by an old custom that runtimes keep.
  mount.target = normal_path("/" + mount.target);
  if (entry.contains("options")) mount.options = entry["options"].get<std::vector<std::string>>();
  if (mount.is_bind()) {
    const bool absolute = mount.source.starts_with('/');
    mount.source = normal_path(absolute ? mount.source : bundle + "/" + mount.source);
  }
  return mount;
}

std::vector<Mount> read_all(const Admitting& admitting) {
  std::vector<Mount> mounts;
  if (const json* list = admitting.find("/mounts"))
    for (std::size_t i = 0; i < list->size(); ++i) mounts.push_back(read((*list)[i], i, admitting.context.bundle));
  return mounts;
}

// What an engine mounts without being asked, and benchsand makes itself or has no use for.
bool is_made_by_benchsand(const Mount& mount) {
  return one_of(mount.target, {"/proc", "/dev"});
}
// With the host's network Docker mounts the host's own three files about it.
bool is_left_out(const Mount& mount) {
  if (mount.source == mount.target && one_of(mount.target, {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}))
    return true;
  return one_of(mount.target, {"/sys", "/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/console", "/dev/hugepages",
                               "/dev/termination-log", "/run/notify"}) ||
         is_inside(mount.target, "/sys/fs/cgroup");
}

bool is_in_kernel_directory(const Mount& mount) {
  return mount.target == "/" || is_inside(mount.target, "/proc") || is_inside(mount.target, "/dev") ||
         is_inside(mount.target, "/sys");
}

// containerd's `ctr` gives every container a /run, `podman run --read-only` these three.
bool is_scratch_of_engine(const Admitting& admitting, const std::vector<Mount>& all, const Mount& mount) {
  if (mount.type != "tmpfs") return false;
  if (mount.target == "/run" &&
      mount.options == std::vector<std::string>{"nosuid", "strictatime", "mode=755", "size=65536k"})
    return true;
  const json* read_only = admitting.find("/root/readonly");
  if (admitting.result.caller != "podman" || read_only == nullptr || !read_only->get<bool>()) return false;
  const auto is_scratch = [](const Mount& other) { return one_of(other.target, {"/run", "/tmp", "/var/tmp"}); };
  const auto given = std::count_if(all.begin(), all.end(), [&](const Mount& other) {
    return other.type == "tmpfs" && is_scratch(other) && other.has("tmpcopyup");
  });
  return given == 3 && is_scratch(mount);
}

bool is_hex_id(std::string_view name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// ".../volumes/NAME/_data": of Docker and Podman alike, wherever their store is. Empty: not a volume.
std::string volume_name(const std::string& source) {
  constexpr std::string_view kEnd = "/_data", kStore = "/volumes/";
  if (!source.ends_with(kEnd)) return "";
  const std::string without = source.substr(0, source.size() - kEnd.size());
  const std::size_t slash = without.rfind('/');
  if (slash == std::string::npos || !without.substr(0, slash + 1).ends_with(kStore)) return "";
  return without.substr(slash + 1);
}

// Files that an engine writes for each container, and mounts at fixed places.
bool is_file_of_engine(const std::string& target) {
  return one_of(target, {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv", "/.dockerenv",
                         "/dev/init", "/sbin/docker-init", "/run/podman-init"}) ||
         is_inside(target, "/run/secrets");
}

void note_options(Admitting& admitting, const Mount& mount) {
  std::string loosening;
  for (const auto& option : mount.options)
    if (one_of(option, {"dev", "suid", "exec", "noexec", "shared", "rshared", "slave", "rslave", "unbindable",
                        "runbindable", "idmap", "ridmap", "tmpcopyup"}))
      loosening += (loosening.empty() ? "" : ",") + option;
  if (!loosening.empty())
    admitting.edit(mount.field + "/options", loosening, "nosuid,nodev,rprivate, executable", "mounts");
}

void take_input(Admitting& admitting, const Mount& mount, const std::string& why) {
  if (!mount.read_only()) admitting.edit(mount.field, mount.target + " read-write", "read-only: " + why, "rootfs");
  note_options(admitting, mount);
  admitting.result.task.inputs.push_back({mount.source, mount.target});
}

// Sizes as tmpfs takes them: a number with k, m or g; a share of memory ("50%") is nothing that was asked of this run.
std::optional<std::uint64_t> tmpfs_number(const Mount& mount, const std::string& name) {
  for (const auto& option : mount.options) {
    if (!option.starts_with(name + "=")) continue;
    std::string digits = option.substr(name.size() + 1);
    std::uint64_t scale = 1;
    if (!digits.empty()) {
      const char unit = digits.back();
      if (unit == 'k' || unit == 'K') scale = 1024;
      if (unit == 'm' || unit == 'M') scale = std::uint64_t{1} << 20;
      if (unit == 'g' || unit == 'G') scale = std::uint64_t{1} << 30;
    }
    if (scale > 1) digits.pop_back();
    if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value > 0 ? std::optional(value * scale) : std::nullopt;
  }
  return std::nullopt;
}

void take_output(Admitting& admitting, const Mount& mount) {
  admitting.result.output = {mount.target, mount.is_bind() ? mount.source : ""};
  admitting.result.task.output = mount.target;
  admitting.edit(mount.field, mount.is_bind() ? "the host's " + mount.source : "tmpfs",
                 "the output: a file system of the run's own" +
                     std::string(mount.is_bind() ? ", copied in at the start and collected at the end" : ""),
                 "output");
  note_options(admitting, mount);
  if (mount.is_bind()) return;
  if (const auto size = tmpfs_number(mount, "size")) admitting.ask("disk", *size, mount.field);
  if (const auto files = tmpfs_number(mount, "nr_inodes")) admitting.ask("files", *files, mount.field);
}

void refuse_type(Admitting& admitting, const Mount& mount) {
  admitting.refuse("mounts", "the mount at " + in_quotes(mount.target) + " is of type " + in_quotes(mount.type),
                   "mount a directory read-only, or one directory or tmpfs to write to");
}

// One mount after the other: gone, an input, or one that can be written to.
void sort_mount(Admitting& admitting, const std::vector<Mount>& all, const Mount& mount, std::vector<Mount>& writable) {
  if (is_made_by_benchsand(mount))
    return admitting.edit(mount.field, mount.type + " at " + mount.target, "benchsand's own", "mounts");
  if (is_left_out(mount) || is_scratch_of_engine(admitting, all, mount))
    return admitting.edit(mount.field, mount.type + " at " + mount.target, "left out", "mounts");
  if (is_in_kernel_directory(mount))
    return admitting.refuse("mounts", "the mount at " + in_quotes(mount.target) + " is in a place that benchsand fills",
                            "mount it elsewhere, as at /task");
  if (!mount.is_bind() && mount.type != "tmpfs") return refuse_type(admitting, mount);
  if (mount.type == "tmpfs" && mount.read_only()) {
    // With tmpcopyup it shows what the image has there; without, it hides it.
    if (mount.has("tmpcopyup"))
      return admitting.edit(mount.field, "a read-only tmpfs at " + mount.target, "left out", "mounts");
    return admitting.refuse("mounts", "the path " + in_quotes(mount.target) + " cannot be hidden by an empty tmpfs",
                            "mount an empty directory there read-only");
  }
  if (mount.is_bind()) {
    if (auto refused = source_refused(mount.source, mount.target, admitting.context.container)) {
      admitting.result.refusals.push_back(std::move(*refused));
      return;
    }
    if (is_file_of_engine(mount.target)) return take_input(admitting, mount, "the engine's own file");
    if (is_hex_id(volume_name(mount.source))) return take_input(admitting, mount, "a volume of the image");
    if (mount.read_only()) return take_input(admitting, mount, "");
    if (auto refused = output_refused(mount.source, mount.target, admitting.context.container)) {
      admitting.result.refusals.push_back(std::move(*refused));
      return;
    }
  }
  writable.push_back(mount);
}

void refuse_several(Admitting& admitting, const std::vector<Mount>& writable) {
  std::string targets;
  for (const auto& mount : writable) targets += (targets.empty() ? "" : ", ") + in_quotes(mount.target);
  admitting.refuse("output", "more than one place can be written to: " + targets,
                   "keep one of them, and mount the others read-only (:ro)");
}

// Each against each: one mount would hide a part of the other.
void refuse_overlaps(Admitting& admitting) {
  std::vector<std::string> targets = {admitting.result.task.output};
  for (const auto& input : admitting.result.task.inputs) {
    for (const auto& other : targets) {
      if (!is_inside(input.target, other) && !is_inside(other, input.target)) continue;
      const bool output = other == admitting.result.task.output;
      admitting.refuse(output ? "output" : "mounts",
                       "the mount at " + in_quotes(input.target) + " overlaps " +
                           (output ? "the output " : "the one at ") + in_quotes(other),
                       output ? "give another place to write to, as with --tmpfs /scratch" : "mount them side by side");
    }
    targets.push_back(input.target);
  }
}

void mounts(Admitting& admitting) {
  const std::vector<Mount> all = read_all(admitting);
  std::vector<Mount> writable;
  for (const auto& mount : all) sort_mount(admitting, all, mount, writable);
  admitting.result.output = {admitting.result.task.output, ""};
  if (writable.size() == 1) take_output(admitting, writable.front());
  if (writable.size() > 1)
    refuse_several(admitting, writable);
  else
    refuse_overlaps(admitting);
  admitting.document.erase("mounts");
}

void root(Admitting& admitting) {
  const auto path = admitting.document["root"]["path"].get<std::string>();
  admitting.result.task.rootfs = normal_path(path.starts_with('/') ? path : admitting.context.bundle + "/" + path);
  const json* read_only = admitting.find("/root/readonly");
  if (read_only == nullptr || !read_only->get<bool>()) admitting.edit("/root/readonly", "false", "true", "rootfs");
}

void described(Admitting&) {}  // a line of the table that `mounts` acts on

}  // namespace

const std::vector<NamedRule> kMountRules{
    {{"/root", "rootfs", "read-only; the run has a file system of its own over it"}, root},
    {{"/mounts", "mounts",
      "`/proc` and `/dev` are benchsand's own; `/sys`, `/dev/pts`, `/dev/shm`, `/dev/mqueue` and cgroups are left out, "
      "and so are the host's own `/etc/hosts`, `/etc/hostname`, `/etc/resolv.conf` and the "
      "tmpfs that `ctr` and `podman --read-only` add; other targets in `/proc`, `/dev`, `/sys`, other types than "
      "bind and tmpfs, and an empty read-only tmpfs, which would hide what the image has there, are refused"},
     mounts},
    {{"/mounts/* of an engine's files", "rootfs",
      "`/etc/hosts`, `/etc/hostname`, `/etc/resolv.conf`, `/run/.containerenv`, `/run/secrets`, the `--init` program: "
      "read-only; of an engine's store only this container's, and the first three of another that it shares a network "
      "with"},
     described},
    {{"/mounts/* of an image's VOLUME", "rootfs", "an anonymous volume: read-only"}, described},
    {{"/mounts/* read-only", "mounts", "an input, nosuid and nodev"}, described},
    {{"/mounts/* read-write", "output",
      "one bind, volume or tmpfs is the output: a file system of the run's own; several are refused, and so is what "
      "overlaps; none: "
      "`/output`"},
     described},
    {{"/mounts/*/source", "mounts",
      "refused: what is in, or holds, `/`, `/proc`, `/sys`, `/dev`, `/run`, `/etc`, `/root`, `/boot`, the engines' "
      "stores, and the "
      "sockets of engines"},
     described},
};

}  // namespace benchsand::admission

namespace benchsand {

using namespace admission;

namespace {

// Keys and tokens lie in directories of a home that begin with a dot; what else lies there is the user's work.
bool is_hidden_at_home(const std::string& path) {
  return (is_inside(path, "/root") || is_inside(path, "/home")) && path.find("/.") != std::string::npos;
}

constexpr std::string_view kDockerStore = "/var/lib/docker/", kPodmanStore = "/var/lib/containers/storage/";

// One component after the beginning, and then this end.
bool is_one_between(std::string_view path, std::string_view begin, std::string_view end) {
  if (!path.starts_with(begin) || !path.ends_with(end) || path.size() <= begin.size() + end.size()) return false;
  return path.substr(begin.size(), path.size() - begin.size() - end.size()).find('/') == std::string::npos;
}

bool is_volume_in_store(const std::string& path) {
  return is_one_between(path, std::string(kDockerStore) + "volumes/", "/_data") ||
         is_one_between(path, std::string(kPodmanStore) + "volumes/", "/_data");
}

// Where engines keep what they write for each container, in a folder that is named after it: Docker, Podman (by the driver of its
// store), containerd's CRI plugin. Layers have such names too, and are elsewhere.
bool holds_containers(std::string_view folder) {
  if (folder == std::string(kDockerStore) + "containers") return true;
  for (const auto store :
       {kPodmanStore, std::string_view("/run/containers/storage/"), std::string_view("/var/run/containers/storage/")})
    if (is_one_between(folder, store, "-containers")) return true;
  return is_one_between(folder, "/run/containerd/io.containerd.", "/sandboxes") ||
         is_one_between(folder, "/var/lib/containerd/io.containerd.", "/sandboxes");
}

// What an engine itself mounts of its store. The three files about the network are another container's where they share one.
bool is_engines_for(const std::string& container, const std::string& path, const std::string& target) {
  if (!is_file_of_engine(target)) return false;
  std::size_t start = 1, end = 0;
  while (start < path.size()) {
    end = std::min(path.find('/', start), path.size());
    if (is_hex_id(std::string_view(path).substr(start, end - start))) break;
    start = end + 1;
  }
  if (start >= path.size() || !holds_containers(std::string_view(path).substr(0, start - 1))) return false;
  if (path.substr(start, end - start) == container) return true;
  const std::string rest = path.substr(end), name = target.substr(target.rfind('/'));
  return one_of(target, {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}) &&
         (rest == name || rest == "/userdata" + name);
}

// What a container leaves in its output is written back to the host's directory.
bool holds_programs(const std::string& source) {
  for (const char* directory : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"})
    if (is_inside(source, directory)) return true;
  return false;
}

}  // namespace

std::optional<Refused> source_refused(const std::string& source, const std::string& target,
                                      const std::string& container) {
  const std::string path = normal_path(source);
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string cure = "mount a directory that holds only what the program needs";
  if (name.ends_with(".sock") &&
      one_of(name, {"docker.sock", "containerd.sock", "podman.sock", "crio.sock", "buildkitd.sock"}))
    return Refused{"mounts", in_quotes(path) + " is the socket of an engine, and who has it has the host",
                   "leave it out"};
  if (is_volume_in_store(path) || is_engines_for(container, path, target)) return std::nullopt;
  bool kept = is_inside("/root", path) || is_hidden_at_home(path);
  for (const char* place : {"/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/boot", "/var/lib/docker",
                            "/var/lib/containers", "/var/lib/containerd", "/var/lib/benchsand"})
    kept = kept || is_inside(path, place) || is_inside(place, path);
  if (kept)
    return Refused{"mounts", in_quotes(path) + " at " + in_quotes(target) + " hands in files of the host itself", cure};
  return std::nullopt;
}

std::optional<Refused> output_refused(const std::string& source, const std::string& target,
                                      const std::string& container) {
  if (auto refused = source_refused(source, target, container)) return refused;
  const std::string path = normal_path(source);
  if (!holds_programs(path)) return std::nullopt;
  return Refused{"output", in_quotes(path) + " holds the host's own programs",
                 "mount it read-only (:ro), and write elsewhere"};
}

// Engines keep theirs below /run and /var; mount points are made in it, and what is in it can be read.
std::optional<Refused> rootfs_refused(const std::string& rootfs) {
  const std::string path = normal_path(rootfs);
  bool of_host = path == "/" || holds_programs(path);
  for (const char* place : {"/proc", "/sys", "/dev", "/etc", "/boot"}) of_host = of_host || is_inside(path, place);
  for (const char* place : {"/root", "/home", "/run", "/tmp", "/var", "/var/lib"}) of_host = of_host || path == place;
  if (!of_host) return std::nullopt;
  return Refused{"rootfs", in_quotes(path) + " as root file system is this host",
                 "give a directory made for the sandbox"};
}

}  // namespace benchsand
