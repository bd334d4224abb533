// The mount table and roots. What works is undone: the other attempts of the same sandbox come after it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs.h"

#define ABSENT "/benchsand-absent"
#define P(x) ((long)(x))

enum { kOpenTreeClone = 1, kOpenTree = 428, kMoveMount, kFsopen, kFsconfig, kFsmount, kFspick, kMountSetattr = 442 };

static char small[8];

const struct plain_call kMountCalls[] = {
    {"umount-absent", SYS_umount2, {P(ABSENT), 0}},
    {"pivot-root", SYS_pivot_root, {P("/"), P("/")}},
    {"fsopen", kFsopen, {P("tmpfs"), 0}},
    {"fsconfig", kFsconfig, {-1, 6, 0, 0, 0}},
    {"fsmount", kFsmount, {-1, 0, 0}},
    {"fspick", kFspick, {-1, P("/"), 0}},
    {"open-tree", kOpenTree, {AT_FDCWD, P("/"), kOpenTreeClone}},
    {"move-mount", kMoveMount, {-1, P(""), -1, P(""), 0x44}},
    {"mount-setattr", kMountSetattr, {-1, P(""), 0, P(small), 1}},
    {0},
};

static int mount_and_undo(const char* what, const char* target, const char* type, unsigned long flags,
                          const char* options) {
  const int result = outcome(mount(what, target, type, flags, options));
  if (result == 0) umount2(target, MNT_DETACH);
  return result;
}

static int mount_new(const struct attempt* attempt) {
  const char* const type = text_argument(attempt, 0, "tmpfs");
  return mount_and_undo("none", text_argument(attempt, 1, "/output"), type, 0, text_argument(attempt, 2, NULL));
}

static int bind(const struct attempt* attempt) {
  return mount_and_undo(text_argument(attempt, 0, "/proc"), text_argument(attempt, 1, "/output"), NULL,
                        MS_BIND | MS_REC, NULL);
}

static int remount_writable(const struct attempt* attempt) {
  const char* const target = text_argument(attempt, 0, "/");
  const int result = outcome(mount(NULL, target, NULL, MS_REMOUNT | MS_BIND, NULL));
  if (result == 0) mount(NULL, target, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
  return result;
}

static int make_shared(const struct attempt* attempt) {
  const char* const target = text_argument(attempt, 0, "/");
  const int result = outcome(mount(NULL, target, NULL, MS_SHARED, NULL));
  if (result == 0) mount(NULL, target, NULL, MS_PRIVATE, NULL);
  return result;
}

// MNT_EXPIRE says EAGAIN the first time, and takes nothing away.
static int unmount(const struct attempt* attempt) {
  const int result = outcome(umount2(text_argument(attempt, 0, "/proc"), MNT_EXPIRE));
  return result == EAGAIN ? 0 : result;
}

static int change_root(const struct attempt* attempt) {
  return outcome(chroot(text_argument(attempt, 0, "/output")));
}

struct handle {
  unsigned size;
  int type;
  unsigned char bytes[128];
};

// The first inode of most file systems: how a file of the host is reached past every mount.
static int open_by_handle(const struct attempt* attempt) {
  struct handle guess = {.size = 8, .type = 1, .bytes = {2}};
  const int here = open(text_argument(attempt, 0, "/"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (here < 0) return errno;
  return outcome(syscall(SYS_open_by_handle_at, here, &guess, O_RDONLY));
}

static int name_to_handle(const struct attempt* attempt) {
  struct handle handle = {.size = sizeof handle.bytes};
  int mount = 0;
  return outcome(syscall(SYS_name_to_handle_at, AT_FDCWD, text_argument(attempt, 0, "/"), &handle, &mount, 0L));
}

// A mask is a mount; under it lies what it hides.
static int unmask(const struct attempt* attempt) {
  char byte;
  const char* const path = text_argument(attempt, 0, "/proc/keys");
  const int result = outcome(umount2(path, MNT_DETACH));
  if (result != 0) return result;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  return read(file, &byte, 1) == 1 ? 0 : kEmpty;
}

static int open_beneath(const struct attempt* attempt) {
  const struct { uint64_t flags, mode, resolve; } how = {.flags = O_RDONLY | O_CLOEXEC};
  return outcome(syscall(437, AT_FDCWD, text_argument(attempt, 0, "/"), &how, sizeof how));
}

const struct verb kMountVerbs[] = {
    {"mount", mount_new},
    {"bind", bind},
    {"remount-writable", remount_writable},
    {"make-shared", make_shared},
    {"umount", unmount},
    {"unmask", unmask},
    {"chroot", change_root},
    {"open-by-handle", open_by_handle},
    {"name-to-handle", name_to_handle},
    {"openat2", open_beneath},
    {0},
};
