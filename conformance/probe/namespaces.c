// Namespaces: new ones, and those of others.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs.h"

enum { kNewTime = 0x80, kNamespaceParent = 0xb702, kNamespaceUser = 0xb701 };

struct kind {
  const char* name;
  unsigned long flag;
};
static const struct kind kKinds[] = {
    {"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS},        {"net", CLONE_NEWNET},
    {"pid", CLONE_NEWPID},   {"ipc", CLONE_NEWIPC},       {"uts", CLONE_NEWUTS},
    {"time", kNewTime},      {"cgroup", CLONE_NEWCGROUP}, {"none", 0},
};

static const struct kind* kind_of(const struct attempt* attempt) {
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i)
    if (strcmp(kKinds[i].name, text_argument(attempt, 0, "user")) == 0) return &kKinds[i];
  return NULL;
}

static int leave(const struct attempt* attempt) {
  const struct kind* const kind = kind_of(attempt);
  return kind ? outcome(unshare((int)kind->flag)) : kUnsupported;
}

// A kernel without this kind of namespace says EINVAL, and so do most others at clone with flags that do not fit.
static int made_child(long child) {
  if (child < 0) return errno;
  if (child == 0) _exit(0);
  return outcome_of_child((int)child);
}

static int clone_into(const struct attempt* attempt) {
  const struct kind* const kind = kind_of(attempt);
  return kind ? made_child(syscall(SYS_clone, kind->flag | SIGCHLD, 0L, 0L, 0L, 0L)) : kUnsupported;
}

// Its flags are behind a pointer, where no filter sees them.
static int clone3_into(const struct attempt* attempt) {
  const struct kind* const kind = kind_of(attempt);
  if (!kind) return kUnsupported;
  uint64_t request[11] = {[0] = kind->flag, [4] = SIGCHLD};
  return made_child(syscall(SYS_clone3, request, sizeof request));
}

static int namespace_of(const struct attempt* attempt, int index) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/%s", text_argument(attempt, index, "self"),
           text_argument(attempt, 0, "net"));
  return open(path, O_RDONLY | O_CLOEXEC);
}

// setns:KIND[:PID]
static int enter(const struct attempt* attempt) {
  const int there = namespace_of(attempt, 1);
  return there < 0 ? errno : outcome(setns(there, 0));
}

static int enter_bad(const struct attempt* attempt) {
  (void)attempt;
  return outcome(setns(-1, 0));
}

static int open_namespace(const struct attempt* attempt) {
  return outcome(namespace_of(attempt, 1));
}

static int parent_namespace(const struct attempt* attempt) {
  const int there = namespace_of(attempt, 1);
  return there < 0 ? errno : outcome(ioctl(there, kNamespaceUser, 0));
}

static int map_users(const struct attempt* attempt) {
  const int file = open(text_argument(attempt, 0, "/proc/self/uid_map"), O_WRONLY | O_CLOEXEC);
  return file < 0 ? errno : outcome(write(file, "0 0 1", 5));
}

static int allow_groups(const struct attempt* attempt) {
  (void)attempt;
  const int file = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
  return file < 0 ? errno : outcome(write(file, "deny", 4));
}

// The whole of the usual way out: a user namespace of one's own, in which one has every capability.
static int become_root(const struct attempt* attempt) {
  (void)attempt;
  if (unshare(CLONE_NEWUSER)) return errno;
  return outcome(unshare(CLONE_NEWNS));
}

const struct verb kNamespaceVerbs[] = {
    {"unshare", leave},
    {"clone", clone_into},
    {"clone3", clone3_into},
    {"setns", enter},
    {"setns-bad", enter_bad},
    {"open-namespace", open_namespace},
    {"namespace-owner", parent_namespace},
    {"uid-map", map_users},
    {"setgroups-file", allow_groups},
    {"own-root", become_root},
    {0},
};
