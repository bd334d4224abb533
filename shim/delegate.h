// The delegate (crun or runc): found once, executed by descriptor, in a pid and mount namespace of its own.
//
// The pid namespace is the lifeline: the delegate is its first process and dies with benchsand (PDEATHSIG), and the kernel
// then kills everything in it, the container included. The mount namespace does the same for mounts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/record.h"
#include "shim/sys.h"

namespace benchsand {

struct DelegateBinary {
  DelegateFacts facts;
  std::string path;                            // for messages
  Fd file;                                     // what is executed: hashed bytes, not a name
};

// `name` is crun or runc, looked up in fixed system directories: PATH belongs to the caller. `cache` is a root-only
// directory in which version and digest of a binary are kept by its identity (device, inode, size, times).
Result<DelegateBinary> find_delegate(const std::string& name, const std::string& cache);

struct DelegateStart {
  std::vector<std::string> arguments;          // without argv[0]
  Fd standard_input, standard_output, standard_error;
  const Fd* output_mount = nullptr;            // detached mount to be attached at output_target
  std::string output_target;
};

// Running, stopped or ended; its exit status is taken once.
class DelegateProcess {
 public:
  static Result<DelegateProcess> start(const DelegateBinary& binary, DelegateStart start);
  DelegateProcess(DelegateProcess&&) = default;
  DelegateProcess& operator=(DelegateProcess&&) = default;
  ~DelegateProcess();                          // kills it and with it everything in its pid namespace

  const Fd& pidfd() const { return pidfd_; }
  // While it is stopped it cannot reap the container's init or remove the cgroup: the evidence keeps.
  Result<void> hold() const;
  Result<void> release() const;
  Result<void> kill() const;
  // Exit code, or 128 + signal; nullopt when it still runs at the deadline.
  Result<std::optional<int>> wait(std::uint64_t deadline_us);

 private:
  DelegateProcess() = default;
  Fd pidfd_;
  bool ended_ = false;
};

}  // namespace benchsand
