// Identity, capabilities and what a process may change about itself.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs.h"

#define P(x) ((long)(x))

static const unsigned kNoGroups[1];
static const struct sched_param kFirst = {.sched_priority = 1000};

const struct plain_call kPrivilegeCalls[] = {
    {"setuid", SYS_setuid, {0}},
    {"setgid", SYS_setgid, {0}},
    {"setreuid", SYS_setreuid, {0, 0}},
    {"setregid", SYS_setregid, {0, 0}},
    {"setresuid", SYS_setresuid, {0, 0, 0}},
    {"setresgid", SYS_setresgid, {0, 0, 0}},
    {"setfsuid", SYS_setfsuid, {0}},
    {"setfsgid", SYS_setfsgid, {0}},
    {"setgroups", SYS_setgroups, {0, P(kNoGroups)}},
    {"keep-capabilities", SYS_prctl, {PR_SET_KEEPCAPS, 1}},
    {"ambient-capability", SYS_prctl, {PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 9999, 0, 0}},
    {"drop-bounding", SYS_prctl, {PR_CAPBSET_DROP, CAP_WAKE_ALARM}},
    {"securebits", SYS_prctl, {PR_SET_SECUREBITS, 0}},
    {"set-dumpable", SYS_prctl, {PR_SET_DUMPABLE, 1}},
    {"set-ptracer", SYS_prctl, {PR_SET_PTRACER, -1}},
    {"set-mm", SYS_prctl, {PR_SET_MM, PR_SET_MM_START_CODE, 1, 0, 1}},
    {"subreaper", SYS_prctl, {PR_SET_CHILD_SUBREAPER, 1}},
    {"clear-no-new-privs", SYS_prctl, {PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0}},
    {"speculation-control", SYS_prctl, {PR_SET_SPECULATION_CTRL, 0, 0xffff, 0, 0}},
    {"timer-slack", SYS_prctl, {PR_SET_TIMERSLACK, 1}},
    {"core-scheduling", SYS_prctl, {62, 0, 0, 0, 0}},
    {"syscall-dispatch", SYS_prctl, {59, 0, 0, 0, 0}},
    {"nice", SYS_setpriority, {PRIO_PROCESS, 0, -20}},
    {"sched-fifo", SYS_sched_setscheduler, {0, SCHED_FIFO, P(&kFirst)}},
    {"sched-batch", SYS_sched_setscheduler, {0, SCHED_BATCH, P(kNoGroups)}},
    {"ioprio", SYS_ioprio_set, {1, 0, 1 << 13}},
    {0},
};

static struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

// capset:NUMBER: that one alone; capset: none
static int set_capabilities(const struct attempt* attempt) {
  const struct __user_cap_data_struct one = {
      .effective = attempt->count ? 1U << number_argument(attempt, 0, CAP_CHOWN) : 0,
      .permitted = attempt->count ? 1U << number_argument(attempt, 0, CAP_CHOWN) : 0};
  const struct __user_cap_data_struct data[2] = {one, {0}};
  return outcome(syscall(SYS_capset, &header, data));
}

static int has_capabilities(const struct attempt* attempt) {
  (void)attempt;
  unsigned long long effective = 0;
  char line[256];
  FILE* const status = fopen("/proc/self/status", "re");
  if (!status) return errno;
  while (fgets(line, sizeof line, status)) {
    if (strncmp(line, "Cap", 3) != 0) continue;
    effective |= strtoull(line + 7, NULL, 16);
    tell_bytes("set", line, 6);
    tell("bits", "%llx", strtoull(line + 7, NULL, 16));
  }
  return effective ? 0 : kEmpty;
}

// ok: privileges can still be gained by executing.
static int gains_privileges(const struct attempt* attempt) {
  (void)attempt;
  char line[256];
  FILE* const status = fopen("/proc/self/status", "re");
  if (!status) return errno;
  while (fgets(line, sizeof line, status))
    if (strncmp(line, "NoNewPrivs:", 11) == 0) return strtol(line + 11, NULL, 10) == 0 ? 0 : kEmpty;
  return kUnsupported;
}

// An own filter could answer a call before anybody counts it. `always allow` changes nothing where it is let in.
static int own_filter(const struct attempt* attempt) {
  struct sock_filter allow = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
  const struct sock_fprog program = {.len = 1, .filter = &allow};
  if (strcmp(text_argument(attempt, 0, "prctl"), "prctl") == 0)
    return outcome(syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
  const long flags = strcmp(text_argument(attempt, 0, ""), "listener") == 0 ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
  return outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

static const struct {
  const char* name;
  int resource;
} kResources[] = {{"nofile", RLIMIT_NOFILE},   {"core", RLIMIT_CORE},     {"cpu", RLIMIT_CPU},  {"nproc", RLIMIT_NPROC},
                  {"memlock", RLIMIT_MEMLOCK}, {"rtprio", RLIMIT_RTPRIO}, {"nice", RLIMIT_NICE}};

// raise-limit:NAME raises the hard limit, set-limit:NAME sets it as it is.
static int change_limit(const struct attempt* attempt, int raise) {
  for (size_t i = 0; i < sizeof kResources / sizeof *kResources; ++i) {
    struct rlimit limit;
    if (strcmp(kResources[i].name, text_argument(attempt, 0, "nofile")) != 0) continue;
    if (syscall(SYS_prlimit64, 0, kResources[i].resource, NULL, &limit)) return errno;
    if (limit.rlim_max == RLIM_INFINITY && raise) return kEmpty;
    if (raise) ++limit.rlim_max;
    return outcome(syscall(SYS_prlimit64, 0, kResources[i].resource, &limit, NULL));
  }
  return kUnsupported;
}

static int raise_limit(const struct attempt* attempt) {
  return change_limit(attempt, 1);
}

static int set_limit(const struct attempt* attempt) {
  return change_limit(attempt, 0);
}

// What it would have to say to be spared when memory runs out.
static int spare_me(const struct attempt* attempt) {
  const char* const wish = text_argument(attempt, 0, "-1000");
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  return file < 0 ? errno : outcome(write(file, wish, strlen(wish)));
}

// A program of root's with the setuid bit, which says by its status whether it is another user: this one, as `effective-root`.
static int setuid_program(const struct attempt* attempt) {
  const char* const program = text_argument(attempt, 0, "/setuid-probe");
  struct stat about;
  if (stat(program, &about)) return errno;
  if (!(about.st_mode & S_ISUID)) return kUnsupported;
  const int child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0) dup2(null, 1);
    execl(program, program, "--effective-root", (char*)NULL);
    _exit(errno);
  }
  return outcome_of_child(child);
}

static int is_root(const struct attempt* attempt) {
  (void)attempt;
  tell("uid", "%d", (int)geteuid());
  return geteuid() == 0 ? 0 : EPERM;
}

const struct verb kPrivilegeVerbs[] = {
    {"capset", set_capabilities},
    {"capabilities", has_capabilities},
    {"new-privileges", gains_privileges},
    {"own-filter", own_filter},
    {"raise-limit", raise_limit},
    {"set-limit", set_limit},
    {"oom-score", spare_me},
    {"setuid-program", setuid_program},
    {"is-root", is_root},
    {0},
};
