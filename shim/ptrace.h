// The wrapper of ptrace: errors as values, and a seize that does not wait for the task.
#pragma once

#include "shim/sys.h"

namespace benchsand::sys {

inline constexpr unsigned long kExitKill = 1UL << 20;  // PTRACE_O_EXITKILL

// PTRACE_SEIZE. False when the task's process is in the middle of an exec: the kernel would make the tracer wait for the end of
// it, and a candidate can make that end depend on its tracer.
Result<bool> ptrace_seize(pid_t task, unsigned long options);
// PTRACE_CONT, PTRACE_LISTEN or PTRACE_DETACH. A task that was killed meanwhile is no error.
Result<void> ptrace_resume(int request, pid_t task, int signal);

struct Stop {
  int signal = 0;
  int event = 0;  // PTRACE_EVENT_*; 0: about to be given `signal`
};
// The next stop of a task that is traced; nullopt: it runs, or has ended. Its exit is left where it is.
Result<std::optional<Stop>> ptrace_next_stop(pid_t task);

// Takes the exit of a task that is traced and has ended, as waitpid gives it; nullopt when it has not, or is no task of ours.
Result<std::optional<int>> ptrace_take_exit(pid_t task);

}  // namespace benchsand::sys
