// The delegate (crun or runc): found once, executed by descriptor, in a pid and mount namespace of its own.
//
//   benchsand ── keeper (first process of the pid namespace) ── delegate `run --detach`, which ends once the container runs
//                   └── the container's init, orphaned to the keeper, which never reaps it
//
// The keeper is the lifeline: it dies with benchsand (PDEATHSIG), and the kernel then kills everything in its pid namespace,
// the container included. The mount namespace does the same for mounts. As nobody reaps init and nobody runs the
// delegate's clean-up, cgroup and exit status stay readable until benchsand is done with them.
//
// The second form has no keeper: init must become the child of an engine. The delegate is benchsand's own child then, in a
// mount namespace of its own, and what it leaves behind is orphaned to the nearest subreaper above benchsand, which so must be
// none itself. The container is ended by its cgroup and by the hold on its init (shim/init_hold).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/record.h"
#include "shim/sys.h"

namespace benchsand {

struct DelegateBinary {
  DelegateFacts facts;
  std::string path;  // for messages
  Fd file;           // what is executed: hashed bytes, not a name
  bool sealed = false;
};

// `name` is crun or runc, looked up in fixed system directories: PATH belongs to the caller. `cache` is a root-only
// directory in which version and digest of a binary are kept by its identity (device, inode, size, times).
Result<DelegateBinary> find_delegate(const std::string& name, const std::string& cache);
Result<std::string> find_delegate_path(const std::string& name);  // where that is

// A detached mount and where it appears in the delegate's mount namespace.
struct Attachment {
  const Fd* mount = nullptr;
  std::string target;
};

struct DelegateStart {
  std::vector<std::string> arguments;  // without argv[0]
  Fd standard_input, standard_output, standard_error;
  std::vector<Attachment> attachments;
};

class Delegate {
 public:
  static Result<Delegate> start(const DelegateBinary& binary, DelegateStart start);
  static Result<Delegate> start_without_keeper(const DelegateBinary& binary, DelegateStart start);
  Delegate(Delegate&&) = default;
  Delegate& operator=(Delegate&&) = default;
  ~Delegate();

  // Waits until it executes; an error says which step before that failed. start() does not wait, so that work can be done meanwhile.
  Result<void> executed();
  bool has_keeper() const { return static_cast<bool>(exit_pipe_); }
  // Readable once the delegate has ended.
  const Fd& exit_pipe() const { return has_keeper() ? exit_pipe_ : keeper_; }
  // The keeper's /proc, which lists its pid namespace and nothing else: keeper 1, delegate 2, and the run.
  Result<Fd> processes() const;
  // Its exit code, or 128 + signal; nullopt when it still runs at the deadline.
  Result<std::optional<int>> wait(std::uint64_t deadline_us);
  // Kills the keeper. When wait_end() succeeds, no process of its pid namespace is left: the kernel waits for them all.
  // Without a keeper both speak of the delegate alone.
  Result<void> kill() const;
  Result<void> wait_end();

 private:
  Delegate() = default;
  static Result<Delegate> start_in(std::uint64_t namespaces, const DelegateBinary& binary, DelegateStart start);
  Fd keeper_;  // pidfd; of the delegate where there is no keeper
  pid_t keeper_pid_ = 0;
  std::optional<int> status_;
  Fd report_;
  Fd lifeline_;  // open as long as benchsand lives
  Fd exit_pipe_;
};

}  // namespace benchsand
