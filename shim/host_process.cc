#include "shim/host_process.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "oci/kernel_files.h"
#include "oci/mountinfo.h"
#include "shim/output_fs.h"

namespace benchsand {

namespace {

std::string joined(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

// "none", or the sets that are not empty.
std::string capabilities(const ProcessStatus& status) {
  const std::pair<const char*, std::uint64_t> sets[] = {{"inheritable", status.cap_inheritable},
                                                        {"permitted", status.cap_permitted},
                                                        {"effective", status.cap_effective},
                                                        {"bounding", status.cap_bounding},
                                                        {"ambient", status.cap_ambient}};
  std::string text;
  for (const auto& [name, bits] : sets)
    if (bits != 0) text += (text.empty() ? "" : " ") + std::string(name) + "=" + std::to_string(bits);
  return text.empty() ? "none" : text;
}

void observe_rlimits(const HostProcess& process, Evidence& evidence) {
  const std::string source = process.name("limits");
  const auto text = process.read("limits");
  const auto limits =
      text ? parse_process_limits(*text, source) : Result<std::map<std::string, RLimit>>(std::unexpected(text.error()));
  const std::pair<const char*, const char*> wanted[] = {{"privileges.open_files", "Max open files"},
                                                        {"privileges.core", "Max core file size"},
                                                        {"cpu-time.backstop", "Max cpu time"}};
  for (const auto& [key, row] : wanted) {
    if (!limits) {
      evidence.missing(key, limits.error().message, source);
      continue;
    }
    const auto found = limits->find(row);
    if (found == limits->end())
      evidence.missing(key, std::string("no row '") + row + "'", source);
    else
      evidence.set(key, found->second.soft + "/" + found->second.hard, source + " " + row);
  }
}

// O_PATH below the process's root; a symlink planted in a rootfs must not lead the host anywhere.
Result<Fd> open_inside(const HostProcess& process, const std::string& absolute) {
  const Fd root = TRY(sys::openat(process.dir().get(), "root", O_PATH | O_DIRECTORY));
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, root.get(), absolute.c_str(), &how, sizeof how);
  if (fd < 0) return sys_error("openat2", process.name("root") + absolute, errno);
  return Fd(static_cast<int>(fd));
}

Result<std::string> identity_inside(const HostProcess& process, const std::string& absolute) {
  const Fd fd = TRY(open_inside(process, absolute));
  return identity_of(TRY(sys::fstat(fd, absolute)));
}

Result<std::string> identity_at(const HostProcess& process, const std::string& file) {
  return identity_of(TRY(sys::fstatat(process.dir().get(), file, 0)));
}

// Every device node below /dev, at any depth: "null 1:3, zero 1:5".
Result<std::string> list_devices(int dir, const std::string& prefix, int depth) {
  if (depth > 4) return fault("list /dev of the container: deeper than expected");
  std::string found;
  for (const auto& name : TRY(sys::list_directory(dir, "."))) {
    const auto facts = TRY(sys::fstatat(dir, name, AT_SYMLINK_NOFOLLOW));
    std::string entry;
    if (S_ISDIR(facts.st_mode)) {
      const Fd inside = TRY(sys::open_directory(dir, name));
      entry = TRY(list_devices(inside.get(), prefix + name + "/", depth + 1));
    } else if (S_ISBLK(facts.st_mode) || S_ISCHR(facts.st_mode)) {
      entry = prefix + name + (S_ISBLK(facts.st_mode) ? " block " : " ") + std::to_string(major(facts.st_rdev)) + ":" +
              std::to_string(minor(facts.st_rdev));
    }
    if (!entry.empty()) found += (found.empty() ? "" : ", ") + entry;
  }
  return found;
}

Result<std::string> devices_of(const HostProcess& process) {
  const Fd path = TRY(open_inside(process, "/dev"));
  const Fd dir = TRY(sys::open_directory(path.get(), "."));
  return list_devices(dir.get(), "", 0);
}

// A kernel without the path cannot have it masked; a path that is there without a mount over it was left open.
Result<std::string> unmasked_paths(const HostProcess& process, const Policy& policy) {
  std::set<std::string> covered;
  for (const auto& mount : TRY(parse_mountinfo(TRY(process.read("mountinfo")), process.name("mountinfo"))))
    covered.insert(mount.target);
  std::string found;
  for (const auto* paths : {&policy.masked_paths, &policy.readonly_paths})
    for (const auto& path : *paths) {
      if (covered.contains(path)) continue;
      const auto there = open_inside(process, path);
      if (there) found += (found.empty() ? "" : " ") + path;
      if (!there && there.error().error_number != ENOENT) return std::unexpected(there.error());
    }
  return found.empty() ? "none" : found;
}

}  // namespace

Result<std::string> surviving_descriptors(const HostProcess& process) {
  std::vector<std::uint64_t> open;
  const Fd fds = TRY(sys::open_directory(process.dir().get(), "fdinfo"));
  for (const auto& name : TRY(sys::list_directory(fds.get(), "."))) {
    const std::string source = process.name("fdinfo/" + name);
    const auto flags = TRY(parse_fd_flags(TRY(sys::read_file(fds.get(), name)), source));
    if ((flags & O_CLOEXEC) == 0) open.push_back(TRY(parse_counter(name + "\n", source)));
  }
  std::sort(open.begin(), open.end());
  return joined(open);
}

Result<HostProcess> HostProcess::open(pid_t pid) {
  HostProcess process;
  process.pid_ = pid;
  process.dir_ = TRY(sys::open_directory(sys::kHere, "/proc/" + std::to_string(pid)));
  return process;
}

std::string HostProcess::name(const std::string& file) const {
  return "/proc/" + std::to_string(pid_) + "/" + file;
}
Result<std::string> HostProcess::read(const std::string& file) const {
  return sys::read_file(dir_.get(), file);
}

Result<Fd> HostProcess::open_namespace(const std::string& type) const {
  return sys::openat(dir_.get(), "ns/" + type, O_RDONLY);
}

bool HostProcess::has_thread(pid_t task) const {
  const auto found = sys::exists(dir_.get(), "task/" + std::to_string(task));
  return found && *found;
}

Result<std::string> HostProcess::program() const {
  // The file alone would not do: a script that begins with #!/proc/self/exe executes the delegate's own program.
  const auto stat = TRY(parse_process_stat(TRY(read("stat")), name("stat")));
  return identity_of(TRY(sys::fstatat(dir_.get(), "exe", 0))) + " " + std::to_string(stat.start_stack);
}

void observe_privileges(const HostProcess& process, Evidence& evidence) {
  const std::string source = process.name("status");
  const auto text = process.read("status");
  const auto status = text ? parse_process_status(*text, source) : Result<ProcessStatus>(std::unexpected(text.error()));
  if (!status) {
    for (const char* key : {"namespaces.init", "privileges.uid", "privileges.gid", "privileges.groups",
                            "privileges.capabilities", "privileges.no_new_privs", "syscalls.mode", "syscalls.filters"})
      evidence.missing(key, status.error().message, source);
  } else {
    evidence.set("namespaces.init", status->own_number, source + " NSpid");
    evidence.set("privileges.uid", joined(status->uid), source + " Uid");
    evidence.set("privileges.gid", joined(status->gid), source + " Gid");
    evidence.set("privileges.groups", status->groups.empty() ? "none" : joined(status->groups), source + " Groups");
    evidence.set("privileges.capabilities", capabilities(*status), source + " Cap*");
    evidence.set("privileges.no_new_privs", status->no_new_privs, source + " NoNewPrivs");
    evidence.set("syscalls.mode", status->seccomp_mode, source + " Seccomp");
    evidence.set("syscalls.filters", status->seccomp_filters, source + " Seccomp_filters");
  }
  observe_rlimits(process, evidence);
  const auto adjustment = process.read("oom_score_adj");
  const auto number = adjustment ? parse_counter(*adjustment, process.name("oom_score_adj"))
                                 : Result<std::uint64_t>(std::unexpected(adjustment.error()));
  evidence.take("privileges.oom_score_adj", number, process.name("oom_score_adj"));
}

void observe_descriptors(const HostProcess& process, const StandardStreams& made, Evidence& evidence) {
  const std::pair<const char*, std::string> streams[] = {
      {"stdin", made.input}, {"stdout", made.output}, {"stderr", made.error}};
  int number = 0;
  for (const auto& [name, expected] : streams) {
    const std::string file = "fd/" + std::to_string(number++);
    if (!expected.empty()) evidence.set(std::string("stdio.") + name + "_made", expected, "/proc/self/fd");
    evidence.take(std::string("stdio.") + name,
                  made.files ? identity_at(process, file) : sys::readlinkat(process.dir().get(), file),
                  process.name(file));
  }
  evidence.take("privileges.descriptors", surviving_descriptors(process), process.name("fdinfo"));
}

void observe_namespaces(const HostProcess& process, Evidence& evidence) {
  for (const char* type : {"mnt", "pid", "ipc", "uts", "cgroup", "net"}) {
    const bool net = std::string(type) == "net";
    const std::string file = std::string("ns/") + type;
    const auto inode = [&](int dir, const std::string& source) -> Result<std::uint64_t> {
      return parse_namespace_link(TRY(sys::readlinkat(dir, source)), type, source);
    };
    evidence.take(net ? "network.namespace" : std::string("namespaces.") + type, inode(process.dir().get(), file),
                  process.name(file));
    evidence.take(net ? "network.host_namespace" : std::string("namespaces.host_") + type,
                  inode(sys::kHere, "/proc/self/" + file), "/proc/self/" + file);
  }
}

namespace {

Result<std::string> id_map_of(const HostProcess& process, const std::string& file) {
  std::string text;
  for (const auto& line : TRY(parse_id_map(TRY(process.read(file)), process.name(file))))
    text += (text.empty() ? "" : ", ") + joined({line.inside, line.outside, line.count});
  return text;
}

Result<std::uint64_t> owner_of_user_namespace(const HostProcess& process) {
  const Fd descriptor = TRY(process.open_namespace("user"));
  uid_t owner = 0;
  if (::ioctl(descriptor.get(), NS_GET_OWNER_UID, &owner) != 0)
    return sys_error("ioctl NS_GET_OWNER_UID", process.name("ns/user"), errno);
  return std::uint64_t{owner};
}

Result<std::uint64_t> user_namespace_at(int dir, const std::string& file) {
  return parse_namespace_link(TRY(sys::readlinkat(dir, file)), "user", file);
}

}  // namespace

void observe_user_namespace(const HostProcess& process, const Policy& policy, const std::string& suffix,
                            Evidence& evidence) {
  evidence.take("namespaces.user" + suffix, user_namespace_at(process.dir().get(), "ns/user"), process.name("ns/user"));
  evidence.take("namespaces.host_user" + suffix, user_namespace_at(sys::kHere, "/proc/self/ns/user"),
                "/proc/self/ns/user");
  if (policy.user_namespace == UserNamespace::host) return;  // then the namespace is this process's own
  if (suffix.empty())
    evidence.take("namespaces.user_owner", owner_of_user_namespace(process), process.name("ns/user") + " owner");
  for (const char* file : {"uid_map", "gid_map"})
    evidence.take(std::string("namespaces.") + file + suffix, id_map_of(process, file), process.name(file));
}

void observe_places(const HostProcess& process, const Policy& policy, const std::string& rootfs_identity,
                    const std::string& output_identity, Evidence& evidence) {
  if (!policy.plain) {
    evidence.set("rootfs.source_identity", rootfs_identity, "fstat of the mount that benchsand made");
    evidence.take("rootfs.identity", identity_inside(process, "/"), process.name("root"));
  }
  evidence.set("output.source_identity", output_identity, "fstat of the mount that benchsand made");
  evidence.take("output.identity", identity_inside(process, policy.output), process.name("root") + policy.output);
  evidence.take("privileges.devices", devices_of(process), process.name("root/dev"));
  evidence.take("mounts.workdir_wanted", identity_inside(process, policy.workdir),
                process.name("root") + policy.workdir);
  const auto cwd = sys::fstatat(process.dir().get(), "cwd", 0);
  evidence.take("mounts.workdir",
                cwd ? Result<std::string>(identity_of(*cwd)) : Result<std::string>(std::unexpected(cwd.error())),
                process.name("cwd"));
}

void observe_inputs(const HostProcess& process, const std::vector<std::pair<std::string, std::string>>& made,
                    Evidence& evidence) {
  std::string opened;
  for (const auto& [target, identity] : made) opened += target + "=" + identity + " ";
  evidence.set("mounts.inputs_made", "inputs: " + opened, "fstat of the mounts that benchsand made");
  const auto seen = [&]() -> Result<std::string> {
    std::string found;
    for (const auto& [target, identity] : made) found += target + "=" + TRY(identity_inside(process, target)) + " ";
    return "inputs: " + found;
  };
  evidence.take("mounts.inputs", seen(), process.name("root"));
}

void observe_masks(const HostProcess& process, const Policy& policy, Evidence& evidence) {
  evidence.take("mounts.unmasked", unmasked_paths(process, policy), process.name("root/proc"));
}

void observe_start_time(const HostProcess& process, const std::string& suffix, Evidence& evidence) {
  const std::string source = process.name("stat");
  const auto observe = [&]() -> Result<std::uint64_t> {
    return TRY(parse_process_stat(TRY(process.read("stat")), source)).start_time;
  };
  evidence.take("evidence.init_start_time" + suffix, observe(), source + " field 22");
}

void observe_mounts(const Result<std::string>& mountinfo, const std::string& source, const Policy& policy,
                    const std::string& suffix, Evidence& evidence) {
  const auto table = mountinfo ? parse_mountinfo(*mountinfo, source)
                               : Result<std::vector<MountEntry>>(std::unexpected(mountinfo.error()));
  if (!table) {
    evidence.missing("mounts.differences" + suffix, table.error().message, source);
    evidence.missing("rootfs.writable_mounts" + suffix, table.error().message, source);
    return;
  }
  std::string differences;
  for (const auto& difference : mount_differences(*table, granted_mounts(policy)))
    differences += (differences.empty() ? "" : "; ") + difference;
  evidence.set("mounts.differences" + suffix, differences.empty() ? "none" : differences, source);
  std::vector<std::string> targets;
  for (const auto& mount : *table)
    if (!mount.options.contains("ro")) targets.push_back(mount.target);
  std::sort(targets.begin(), targets.end());  // delegates differ in the order in which they mount
  std::string writable;
  for (const auto& target : targets) writable += (writable.empty() ? "" : " ") + target;
  evidence.set("rootfs.writable_mounts" + suffix, writable, source);
}

}  // namespace benchsand
