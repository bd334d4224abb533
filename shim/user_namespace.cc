#include "shim/user_namespace.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "oci/bundle.h"
#include "oci/kernel_files.h"
#include "shim/helper_process.h"

namespace benchsand {

namespace {

constexpr unsigned int kCapSysResource = 24;

// In a child between fork and exit: system calls alone. Only the effective ids change, so the capabilities stay permitted
// and can be raised again: hosts that restrict user namespaces restrict those without.
int become_and_unshare(std::uint32_t id) {
  if (::syscall(SYS_setresgid, -1, id, -1) != 0 || ::syscall(SYS_setresuid, -1, id, -1) != 0) return errno;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return errno;
  for (auto& set : sets) set.effective = set.permitted;
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return errno;
  return ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
}

struct KernelLimit {
  int resource;
  rlimit value;
};

Result<KernelLimit> kernel_limit(const std::string& type, std::uint64_t value) {
  constexpr std::pair<const char*, int> kResources[] = {{"RLIMIT_NOFILE", RLIMIT_NOFILE},
                                                        {"RLIMIT_CORE", RLIMIT_CORE},
                                                        {"RLIMIT_CPU", RLIMIT_CPU},
                                                        {"RLIMIT_NICE", RLIMIT_NICE},
                                                        {"RLIMIT_RTPRIO", RLIMIT_RTPRIO}};
  for (const auto& [name, resource] : kResources)
    if (type == name) return KernelLimit{resource, {value, value}};
  return fault("set " + type + ": no such limit is known here");
}

// In a child between fork and exit: system calls alone.
int enter_and_limit(int user_namespace, pid_t init, const std::vector<KernelLimit>& limits) {
  if (::setns(user_namespace, CLONE_NEWUSER) != 0) return errno;
  for (const auto& [resource, value] : limits)
    if (::syscall(SYS_prlimit64, init, resource, &value, nullptr) != 0) return errno;
  return 0;
}

std::string id_map_text(const HostIds& host, std::uint32_t candidate) {
  return "0 " + std::to_string(host.root) + " 1\n" + std::to_string(candidate) + " " + std::to_string(host.candidate) +
         " 1\n";
}

}  // namespace

Result<Fd> mount_of_namespace(const Fd& descriptor, const std::string& name) {
  const long mount =
      ::syscall(SYS_open_tree, descriptor.get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  if (mount < 0) return sys_error("open_tree", name, errno);
  return Fd(static_cast<int>(mount));
}

Result<bool> may_set_limits_of_others() {
  const std::string path = "/proc/self/status";
  const auto status = TRY(parse_process_status(TRY(sys::read_file(sys::kHere, path)), path));
  return (status.cap_effective >> kCapSysResource & 1) != 0;
}

Result<void> set_limits_from_inside(const Policy& policy, const Fd& user_namespace, pid_t init) {
  std::vector<KernelLimit> limits;
  for (const auto& [type, value] : process_limits(policy)) limits.push_back(TRY(kernel_limit(type, value)));
  const auto enter = [&](int inside) { return enter_and_limit(inside, init, limits); };
  TRY(HelperProcess::start("set the limits of the candidate:", "setns or prlimit", enter, user_namespace.get()));
  return {};
}

Result<UserNamespaceMade> make_user_namespace(const Policy& policy) {
  // Killed and reaped here; the namespace lives on in the descriptor.
  const auto holder = TRY(HelperProcess::start("make a user namespace for the run:", "unshare",
                                               [&](int) { return become_and_unshare(policy.host_ids->root); }));
  const Fd process = TRY(sys::open_directory(sys::kHere, "/proc/" + std::to_string(holder.pid())));
  TRY_VOID(sys::write_file(process.get(), "gid_map", id_map_text(*policy.host_ids, policy.gid)));
  TRY_VOID(sys::write_file(process.get(), "uid_map", id_map_text(*policy.host_ids, policy.uid)));
  UserNamespaceMade made;
  made.descriptor = TRY(sys::openat(process.get(), "ns/user", O_RDONLY));
  made.mount = TRY(mount_of_namespace(made.descriptor, "the run's user namespace"));
  return made;
}

}  // namespace benchsand
