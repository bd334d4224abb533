// The listener socket on which the delegate hands over the seccomp fd, and the notifications that come through it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "oci/ledger.h"
#include "shim/sys.h"

namespace benchsand {

struct Notification {
  std::uint64_t id = 0;
  pid_t task = 0;  // thread id, seen from the host
  int call = 0;    // system call number
  CallArguments arguments{};
};
bool is_exec(const Notification& notification);

// A seccomp listener fd. When it closes (benchsand dies), every notified call fails with ENOSYS: nothing can start any more.
class SeccompNotify {
 public:
  SeccompNotify() = default;
  explicit SeccompNotify(Fd fd) : fd_(std::move(fd)) {}
  const Fd& fd() const { return fd_; }

  // nullopt: the task died or was interrupted in between.
  Result<std::optional<Notification>> receive() const;
  // Both: false when the task is gone or a signal voided the wait. CONTINUE lets the kernel run the call; used for exec and
  // exit_group alone (is_let_run), whose permission does not depend on memory that the candidate could change under us.
  Result<bool> let_run(const Notification& notification) const;
  Result<bool> refuse(const Notification& notification, int errno_value) const;
  Result<bool> still_waits(const Notification& notification) const;
  // For a run that learns, and so has no score: let_run takes any call.
  void learn() { learns_ = true; }

 private:
  Fd fd_;
  bool learns_ = false;
};

// The one descriptor, named seccompFd, that comes over a connection to the listener, with the state of container `id`.
Result<SeccompNotify> receive_seccomp_fd(const Fd& connection, const std::string& id);

class SeccompListener {
 public:
  // Binds PATH inside a directory that only root can enter.
  static Result<SeccompListener> create(const std::string& path);
  const Fd& fd() const { return fd_; }
  Result<Fd> accept_connection() const;  // from a root process
  // One connection, and what comes over it.
  Result<SeccompNotify> accept(const std::string& id, std::uint64_t deadline_us) const;

 private:
  Fd fd_;
};

// Fails when this kernel has no SECCOMP_RET_USER_NOTIF, naming what is missing.
Result<void> require_seccomp_notify();

}  // namespace benchsand
