// What should not be seen: the host's paths, descriptors and environment. `empty` is the good answer.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs.h"

extern char** environ;

enum { kFirstOfOurs = 3, kMostDescriptors = 4096 };

// The host's file through a descriptor that was left open: dirfd/../../../etc
static int escapes_by(int descriptor) {
  const int there = openat(descriptor, "../../../../../../proc/self/root/etc/machine-id", O_RDONLY | O_CLOEXEC);
  if (there < 0) return 0;
  close(there);
  return 1;
}

// descriptors: those above the three that are granted, but for the pipe of the report. descriptors:FOLDER: with one that it opens
// itself, to see that one is seen.
static int descriptors(const struct attempt* attempt) {
  char path[64], target[256];
  int seen = 0;
  if (attempt->count && open(attempt->arguments[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0) return errno;
  for (int i = kFirstOfOurs; i < kMostDescriptors; ++i) {
    if (i == report_descriptor || fcntl(i, F_GETFD) < 0) continue;
    snprintf(path, sizeof path, "/proc/self/fd/%d", i);
    const ssize_t size = readlink(path, target, sizeof target);
    if (seen++ < 4) tell_bytes("open", target, size < 0 ? 0 : (size_t)size);
    if (escapes_by(i)) tell("escapes", "%d", i);
  }
  return seen ? 0 : kEmpty;
}

// fd-link:N:PATH: out through /proc/self/fd/N, the shape of a working directory that leads out of the container
static int through_descriptor(const struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "/proc/self/fd/%ld/%s", number_argument(attempt, 0, 7),
           text_argument(attempt, 1, "../../../../etc/shadow"));
  return outcome(open(path, O_RDONLY | O_CLOEXEC));
}

static int working_directory(const struct attempt* attempt) {
  (void)attempt;
  char place[1024];
  if (!getcwd(place, sizeof place)) return errno;
  tell_bytes("cwd", place, strlen(place));
  return place[0] == '/' && strncmp(place, "(unreachable)", 13) != 0 ? kEmpty : 0;
}

// Up from the root: another directory than the root itself means that the root is not the top.
static int above_root(const struct attempt* attempt) {
  (void)attempt;
  struct stat root, above;
  if (stat("/", &root) || stat("/../../../../..", &above)) return errno;
  return root.st_ino == above.st_ino && root.st_dev == above.st_dev ? kEmpty : 0;
}

// environment:NAME…: variables other than those named
static int environment(const struct attempt* attempt) {
  int seen = 0;
  for (char** entry = environ; *entry; ++entry) {
    const size_t size = strcspn(*entry, "=");
    int granted = 0;
    for (int i = 0; i < attempt->count; ++i)
      granted |= strlen(attempt->arguments[i]) == size && strncmp(attempt->arguments[i], *entry, size) == 0;
    if (granted) continue;
    if (seen++ < 8) tell_bytes("name", *entry, size);
  }
  return seen ? 0 : kEmpty;
}

// text-in:PATH:TEXT…: one of these texts stands in that file of the kernel
static int text_in(const struct attempt* attempt) {
  static char text[1 << 18];
  const int file = open(text_argument(attempt, 0, "/proc/self/mountinfo"), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  size_t size = 0;
  for (ssize_t n; size + 1 < sizeof text && (n = read(file, text + size, sizeof text - 1 - size)) > 0;)
    size += (size_t)n;
  if (size == 0) return kEmpty;
  for (size_t i = 0; i < size; ++i)
    if (text[i] == '\0') text[i] = '\n';
  for (int i = 1; i < attempt->count; ++i) {
    const char* const found = strstr(text, attempt->arguments[i]);
    if (!found) continue;
    const char* start = found;
    while (start > text && start[-1] != '\n') --start;
    const size_t length = strcspn(start, "\n");
    tell_bytes("found", start, length > 200 ? 200 : length);
    return 0;
  }
  return kEmpty;
}

// A mount whose root is not the root of its file system is a part of a tree of somebody else's, by its path there.
static int host_paths(const struct attempt* attempt) {
  char line[4096], root[1024], place[1024];
  int seen = 0;
  FILE* const table = fopen("/proc/self/mountinfo", "re");
  if (!table) return errno;
  while (fgets(line, sizeof line, table)) {
    if (sscanf(line, "%*s %*s %*s %1023s %1023s", root, place) != 2) return kUnsupported;
    int granted = strcmp(root, "/") == 0 || strncmp(place, "/dev/", 5) == 0 || strncmp(place, "/proc/", 6) == 0;
    for (int i = 0; i < attempt->count; ++i) granted |= strcmp(place, attempt->arguments[i]) == 0;
    const char* const layer = strstr(line, "dir=");  // lowerdir=, upperdir= and workdir= of an overlay
    if (layer) {
      const char* start = layer;
      while (start > line && start[-1] != ',' && start[-1] != ' ') --start;
      const size_t length = strcspn(start, ", \n");
      if (layer[4] == '/' && strncmp(layer + 4, "/proc/self/fd/", 14) != 0 && seen++ < 8)
        tell_bytes("layer", start, length > 120 ? 120 : length);
    }
    if (granted) continue;
    if (seen++ < 8) tell_bytes("root", root, strlen(root));
  }
  fclose(table);
  return seen ? 0 : kEmpty;
}

static int link_target(const struct attempt* attempt) {
  char target[1024];
  const ssize_t size = readlink(text_argument(attempt, 0, "/proc/1/exe"), target, sizeof target);
  if (size < 0) return errno;
  tell_bytes("target", target, (size_t)size);
  for (int i = 1; i < attempt->count; ++i)
    if ((size_t)size == strlen(attempt->arguments[i]) && memcmp(target, attempt->arguments[i], (size_t)size) == 0)
      return kEmpty;
  return 0;
}

const struct verb kLeakVerbs[] = {
    {"descriptors", descriptors}, {"fd-link", through_descriptor}, {"cwd", working_directory},
    {"above-root", above_root},   {"environment", environment},    {"text-in", text_in},
    {"host-paths", host_paths},   {"link-target", link_target},    {0},
};
