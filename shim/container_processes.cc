#include "shim/container_processes.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "oci/kernel_files.h"
#include "shim/helper_process.h"

namespace benchsand {

namespace {

constexpr int kHandedOver = 9;  // the helper has 0, 1 and 2, and nothing above

// As the pid namespace of a file system is that of who makes it, and setns only changes that of children. System calls alone.
int mount_proc() {
  const long context = ::syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
  if (context < 0) return errno;
  if (::syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return errno;
  const long mount = ::syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
                               MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (mount < 0) return errno;
  return ::dup2(static_cast<int>(mount), kHandedOver) < 0 ? errno : 0;
}

int mount_proc_of(int pid_namespace) {
  if (::setns(pid_namespace, CLONE_NEWPID) != 0) return errno;
  // The table of descriptors is shared, so that the mount stays when this child has ended.
  const long child = ::syscall(SYS_clone, CLONE_FILES | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child < 0) return errno;
  if (child == 0) ::_exit(mount_proc());
  int status = 0;
  while (::waitpid(static_cast<pid_t>(child), &status, 0) < 0)
    if (errno != EINTR) return errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

}  // namespace

Result<Fd> container_processes(const HostProcess& init) {
  const Fd pid_namespace = TRY(init.open_namespace("pid"));
  const auto helper = TRY(HelperProcess::start("make a proc file system of the container:", "setns or mount",
                                               mount_proc_of, pid_namespace.get()));
  const Fd pidfd = TRY(sys::pidfd_open(helper.pid()));
  const Fd mount = TRY(sys::pidfd_getfd(pidfd, kHandedOver));
  // Of a file system that nobody attached; opened, for what is handed over is a mount and not a directory to read.
  return sys::open_directory(mount.get(), ".");
}

Result<std::string> processes_gone(const Fd& processes) {
  std::string left;
  for (const auto& entry : TRY(sys::list_directory(processes.get(), "."))) {
    if (entry.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto text = sys::read_file(processes.get(), entry + "/stat");
    if (!text && (text.error().error_number == ENOENT || text.error().error_number == ESRCH)) continue;
    const auto stat = TRY(parse_process_stat(TRY(text), entry + "/stat"));
    if (entry != "1" || stat.state != 'Z') left += (left.empty() ? "" : " ") + entry;
  }
  return left.empty() ? "gone" : "processes " + left;
}

}  // namespace benchsand
