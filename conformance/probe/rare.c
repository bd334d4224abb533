// Calls that no program of a candidate needs and no attempt of its own is about, and commands of calls that are let through for others. Behind
// the gate each meets a bad descriptor, a bad address or a bad number, or only asks.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs.h"

#define P(x) ((long)(x))

enum { kNoCommand = 9999, kSetGs = 0x1001, kGetGs = 0x1004 };

static long answer[16];

static const struct plain_call kRareCalls[] = {
    {"fcntl-lock-of-descriptor", SYS_fcntl, {-1, 37, P(answer)}},
    {"fcntl-notify", SYS_fcntl, {-1, F_NOTIFY, 0}},
    {"fcntl-set-signal", SYS_fcntl, {-1, F_SETSIG, 0}},
    {"fcntl-get-signal", SYS_fcntl, {-1, F_GETSIG, 0}},
    {"fcntl-add-seals", SYS_fcntl, {-1, F_ADD_SEALS, 0}},
    {"fcntl-write-hint", SYS_fcntl, {-1, 1036, P(answer)}},
    {"ioctl-packet-mode", SYS_ioctl, {-1, 0x5420, P(answer)}},
    {"ioctl-peer", SYS_ioctl, {-1, 0x5441, 0}},
    {"ioctl-set-flags", SYS_ioctl, {-1, 0x40086602, P(answer)}},
    {"ioctl-clone", SYS_ioctl, {-1, 0x40049409, -1}},
    {"ioctl-extents", SYS_ioctl, {-1, 0xc020660b, P(answer)}},
    {"prctl-death-signal", SYS_prctl, {PR_SET_PDEATHSIG, kNoCommand}},
    {"prctl-machine-check", SYS_prctl, {PR_MCE_KILL, 99, 0, 0, 0}},
    {"prctl-cycle-counter", SYS_prctl, {PR_SET_TSC, 99}},
    {"prctl-huge-pages", SYS_prctl, {PR_SET_THP_DISABLE, 0, 1, 1, 1}},
    {"prctl-name-memory", SYS_prctl, {0x53564d41, 99, 0, 0, 0}},
    {"prctl-unknown", SYS_prctl, {kNoCommand}},
    {"arch-prctl-gs", SYS_arch_prctl, {kGetGs, P(answer)}},
    {"arch-prctl-set-gs", SYS_arch_prctl, {kSetGs, 0}},
    {"capget", SYS_capget, {0, 0}},
    {"chown", SYS_chown, {0, -1, -1}},
    {"lchown", SYS_lchown, {0, -1, -1}},
    {"utime", SYS_utime, {0, 0}},
    {"utimes", SYS_utimes, {0, 0}},
    {"futimesat", SYS_futimesat, {-1, 0, 0}},
    {"getdents", SYS_getdents, {-1, 0, 0}},
    {"openat2", SYS_openat2, {-1, 0, 0, 0}},
    {"fremovexattr", SYS_fremovexattr, {-1, 0}},
    {"lremovexattr", SYS_lremovexattr, {0, 0}},
    {"preadv2", SYS_preadv2, {-1, 0, 0, 0, 0, 0}},
    {"pwritev2", SYS_pwritev2, {-1, 0, 0, 0, 0, 0}},
    {"readahead", SYS_readahead, {-1, 0, 0}},
    {"syncfs", SYS_syncfs, {-1}},
    {"epoll-create", SYS_epoll_create, {0}},
    {"eventfd", SYS_eventfd, {0}},
    {"signalfd", SYS_signalfd, {-1, 0, 0}},
    {"inotify-init", SYS_inotify_init, {0}},
    {"select", SYS_select, {-1, 0, 0, 0, 0}},
    {"io-submit", SYS_io_submit, {0, 0, 0}},
    {"io-destroy", SYS_io_destroy, {0}},
    {"io-getevents", SYS_io_getevents, {0, 0, 0, 0, 0}},
    {"mlock", SYS_mlock, {0, 0}},
    {"mlock2", SYS_mlock2, {0, 0, 0}},
    {"mlockall", SYS_mlockall, {0}},
    {"munlock", SYS_munlock, {0, 0}},
    {"munlockall", SYS_munlockall, {0}},
    {"mincore", SYS_mincore, {1, 0, 0}},
    {"pkey-free", SYS_pkey_free, {-1}},
    {"get-mempolicy", SYS_get_mempolicy, {0, 0, 0, 0, 0}},
    {"sched-setaffinity", SYS_sched_setaffinity, {0, 0, 0}},
    {"sched-setattr", SYS_sched_setattr, {0, 0, 0}},
    {"sched-getattr", SYS_sched_getattr, {0, 0, 0, 0}},
    {"sched-setparam", SYS_sched_setparam, {0, 0}},
    {"sched-getparam", SYS_sched_getparam, {0, 0}},
    {"sched-getscheduler", SYS_sched_getscheduler, {0}},
    {"sched-interval", SYS_sched_rr_get_interval, {-1, 0}},
    {"ioprio-get", SYS_ioprio_get, {0, 0}},
    {"get-robust-list", SYS_get_robust_list, {0, 0, 0}},
    {"getitimer", SYS_getitimer, {kNoCommand, 0}},
    {"timer-gettime", SYS_timer_gettime, {-1, 0}},
    {"timer-overrun", SYS_timer_getoverrun, {-1}},
    {"timerfd-gettime", SYS_timerfd_gettime, {-1, 0}},
    {"tgsigqueue", SYS_rt_tgsigqueueinfo, {0, 0, 0, 0}},
    {"mq-attributes", SYS_mq_getsetattr, {-1, 0, 0}},
    {"mq-notify", SYS_mq_notify, {-1, 0}},
    {"mq-receive", SYS_mq_timedreceive, {-1, 0, 0, 0, 0}},
    {"mq-send", SYS_mq_timedsend, {-1, 0, 0, 0, 0}},
    {"msg-receive", SYS_msgrcv, {-1, 0, 0, 0, 0}},
    {"msg-send", SYS_msgsnd, {-1, P(answer), 0, 0}},
    {"sem-operation", SYS_semop, {-1, 0, 0}},
    {"sem-timed", SYS_semtimedop, {-1, 0, 0, 0}},
    {"shm-attach", SYS_shmat, {-1, 0, 0}},
    {"shm-detach", SYS_shmdt, {1}},
    {0},
};

// ok: one of them is let through, whatever comes behind the gate. rare-calls:all: every one is.
static int rare_calls(const struct attempt* attempt) {
  const int all = strcmp(text_argument(attempt, 0, ""), "all") == 0;
  int tried = 0, refused = 0;
  for (const struct plain_call* plain = kRareCalls; plain->name; ++plain) {
    const long* const a = plain->arguments;
    const int result = outcome(syscall(plain->number, a[0], a[1], a[2], a[3], a[4], a[5]));
    ++tried;
    refused += result == EPERM;
    if (all == (result == EPERM)) tell(all ? "refused" : "let-through", "%s", plain->name);
  }
  tell("tried", "%d", tried);
  return (all ? refused > 0 : refused == tried) ? EPERM : 0;
}

// refused-storm:COUNT: a refused call that is counted, again and again. ok: nobody minds.
static int refused_storm(const struct attempt* attempt) {
  const long wanted = number_argument(attempt, 0, 120000);
  for (long i = 0; i < wanted; ++i)
    if (syscall(SYS_setfsuid, -1L) < 0 && errno != EPERM) return errno;
  tell("made", "%ld", wanted);
  return 0;
}

const struct verb kRareVerbs[] = {
    {"rare-calls", rare_calls},
    {"refused-storm", refused_storm},
    {0},
};
