// The rules under which tests/fixtures/seccomp was captured.
#pragma once

#include "oci/seccomp.h"

namespace benchsand {

inline SeccompRules captured_rules() {
  SeccompRules rules;
  rules.notify = {"execve", "execveat", "exit_group"};
  rules.allow = {"arch_prctl",
                 "brk",
                 "close",
                 "epoll_pwait",
                 "exit",
                 "faccessat2",
                 "fcntl",
                 "fstat",
                 "fstatfs",
                 "futex",
                 "getdents64",
                 "getpid",
                 "getppid",
                 "getrandom",
                 "gettid",
                 "getuid",
                 "kill",
                 "madvise",
                 "mmap",
                 "mprotect",
                 "munmap",
                 "nanosleep",
                 "newfstatat",
                 "openat",
                 "read",
                 "readlink",
                 "rseq",
                 "rt_sigaction",
                 "rt_sigprocmask",
                 "rt_sigreturn",
                 "sched_yield",
                 "set_robust_list",
                 "set_tid_address",
                 "sigaltstack",
                 "tgkill",
                 "uname",
                 "wait4",
                 "write"};
  rules.allow_if = {{.call = "clone", .index = 0, .mask = 0x7e020080, .values = {0}},
                    {.call = "socket", .index = 0, .values = {1}},
                    {.call = "ioctl", .index = 1, .mask = 0xffffffff, .values = {0x5401, 0x541b}},
                    {.call = "prlimit64", .index = 1, .mask = 0xffffffff, .values = {3, 7}},
                    {.call = "prctl", .index = 0, .mask = 0xffffffff, .values = {15, 16}}};
  rules.refuse_with = {{"EACCES", {"socket", "connect"}}, {"ENOSYS", {"clone3"}}};
  return rules;
}

}  // namespace benchsand
