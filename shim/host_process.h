// What the host sees of one process through /proc/PID. The directory is held open, so that every read is of the same
// process, whatever happens to its number.
#pragma once

#include <string>

#include "oci/evidence.h"
#include "oci/policy.h"
#include "shim/sys.h"

namespace benchsand {

class HostProcess {
 public:
  static Result<HostProcess> open(pid_t pid);

  pid_t pid() const { return pid_; }
  const Fd& dir() const { return dir_; }
  Result<std::string> read(const std::string& file) const;
  std::string name(const std::string& file) const;  // "/proc/123/status"
  Result<Fd> open_namespace(const std::string& type) const;
  bool has_thread(pid_t task) const;
  Result<std::string> program() const;  // the image: "device:inode" of /proc/PID/exe, and where its stack begins

 private:
  pid_t pid_ = 0;
  Fd dir_;
};

// Which pipes and files benchsand handed out as 0, 1 and 2, by their links ("pipe:[123]"); empty where the delegate makes a terminal.
struct StandardStreams {
  std::string input, output, error;
  bool files = false;  // known by "device:inode": files and FIFOs that have a name somewhere
};

void observe_privileges(const HostProcess& process, Evidence& evidence);  // privileges, syscalls.mode, backstop
void observe_descriptors(const HostProcess& process, const StandardStreams& made, Evidence& evidence);
void observe_namespaces(const HostProcess& process, Evidence& evidence);  // and network.namespace
void observe_places(const HostProcess& process, const Policy& policy, const std::string& rootfs_identity,
                    const std::string& output_identity, Evidence& evidence);  // rootfs, output, devices
// The descriptors that do not close on exec, which a program begins with: "0 1 2".
Result<std::string> surviving_descriptors(const HostProcess& process);
// The user namespace, and which ids of the host exist in it; also of a zombie.
void observe_user_namespace(const HostProcess& process, const Policy& policy, const std::string& suffix,
                            Evidence& evidence);
void observe_start_time(const HostProcess& process, const std::string& suffix, Evidence& evidence);

// What stands at the targets of the inputs, and the working directory.
void observe_inputs(const HostProcess& process, const std::vector<std::pair<std::string, std::string>>& made,
                    Evidence& evidence);

// Paths to be hidden or write-protected that exist in the container and have no mount over them.
void observe_masks(const HostProcess& process, const Policy& policy, Evidence& evidence);

// The mount table text, from wherever it was read.
void observe_mounts(const Result<std::string>& mountinfo, const std::string& source, const Policy& policy,
                    const std::string& suffix, Evidence& evidence);

}  // namespace benchsand
