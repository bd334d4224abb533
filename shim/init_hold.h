// Init under ptrace, so that its real parent, an engine, cannot reap it before benchsand has read what only a zombie still
// tells, and so that init dies with benchsand (PTRACE_O_EXITKILL). Seized, never interrupted: nothing stops that would not
// have stopped anyway, and a call that waits in seccomp notify goes on waiting.
//
// The thread that seizes must live and make every call: to the kernel a tracer is a thread.
#pragma once

#include <optional>
#include <vector>

#include "shim/sys.h"

namespace benchsand {

class InitHold {
 public:
  static Result<InitHold> seize(pid_t init);
  InitHold(InitHold&&) = default;
  InitHold& operator=(InitHold&&) = delete;
  ~InitHold();  // not released: init is killed first

  const Fd& fd() const { return signals_; }  // readable: serve() has something to do
  // Passes on what the held tasks stopped for, one stop of each; never takes init's exit. False once init is about to die of
  // a fault of its own (dying_of() says which signal): it stands still until release(), and can be read until then.
  Result<bool> serve();
  std::optional<int> dying_of() const { return dying_of_; }
  std::uint64_t stops() const { return stops_; }
  // Another thread of init is about to execute, and will then be init: the kernel ends the leader and its hold silently. To be
  // called before that exec is let run. False: another exec is still in progress, ask again.
  Result<bool> also(pid_t task);
  // Lets the real parent have init: its wait status, as waitpid gives it. Without a fault it must be a zombie, or become one.
  // `alone`: no other process of the run lives. Otherwise an init about to die of a fault is killed: the fault could be undone.
  Result<int> release(std::uint64_t deadline_us, bool alone);
  std::size_t threads() const { return threads_.size(); }  // that also() holds

 private:
  InitHold() = default;
  Result<void> serve_one(pid_t task, bool& over);
  Result<void> pass_on_signal(pid_t task, int signal, bool& over);
  Result<bool> is_caught(pid_t task, int signal) const;
  Result<int> let_go(std::uint64_t deadline_us, bool alone);
  Result<int> let_die_of_fault(std::uint64_t deadline_us, bool alone);
  Result<int> kill_at_fault(std::uint64_t deadline_us);

  pid_t init_ = 0;
  Fd dir_, pidfd_, signals_;  // dir_: /proc/INIT
  bool namespace_init_ = false;
  std::vector<pid_t> threads_;  // of init, beside its leader
  std::optional<int> dying_of_, released_;
  bool comes_again_ = true;  // that fault, when init goes on
  bool ends_at_destruction_ = true;
  std::uint64_t stops_ = 0;
};

}  // namespace benchsand
