// Every place that there is: which of them takes a write.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs.h"

enum { kLongestPath = 1024, kMostFolders = 4096, kDeepest = 12 };

struct findings {
  int tried, took, devices, other;
  int refusals[256];
  const struct attempt* granted;  // whose arguments are the places that may be written to
};

static int is_granted(const struct findings* findings, const char* path) {
  for (int i = 0; i < findings->granted->count; ++i) {
    const char* const place = findings->granted->arguments[i];
    const size_t size = strlen(place);
    if (strncmp(path, place, size) == 0 && (path[size] == '\0' || path[size] == '/')) return 1;
  }
  return 0;
}

static void note(struct findings* findings, const char* path, int result) {
  ++findings->tried;
  if (result > 0 && result < 256) ++findings->refusals[result];
  if (result != 0) return;
  ++findings->took;
  tell_bytes("took", path, strlen(path));
  if (!is_granted(findings, path)) ++findings->other;
}

static void try_folder(struct findings* findings, const char* path) {
  char name[kLongestPath + 32];
  snprintf(name, sizeof name, "%s/benchsand-probe", strcmp(path, "/") == 0 ? "" : path);
  const int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const int result = file < 0 ? errno : write(file, "x", 1) == 1 ? 0 : errno;
  if (file >= 0) {
    close(file);
    unlink(name);
  }
  note(findings, path, result);
}

// Opened only: what a file of the kernel does with a byte is not known. Devices take bytes that go nowhere.
static void try_file(struct findings* findings, const char* path, mode_t kind) {
  if (S_ISCHR(kind) || S_ISBLK(kind)) {
    ++findings->devices;
    return;
  }
  const int file = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  const int result = file < 0 ? errno : 0;
  if (file >= 0) close(file);
  note(findings, path, result);
}

static void try_place(struct findings* findings, const char* path) {
  struct stat about;
  if (stat(path, &about))
    note(findings, path, errno);
  else if (S_ISDIR(about.st_mode))
    try_folder(findings, path);
  else
    try_file(findings, path, about.st_mode);
}

// ok: another place than the granted ones took it. empty: none at all did. Else the refusal that was met most often.
static int judged(const struct findings* findings) {
  int most = 0;
  tell("tried", "%d", findings->tried);
  if (findings->devices) tell("devices", "%d", findings->devices);
  for (int i = 1; i < 256; ++i) {
    if (findings->refusals[i] == 0) continue;
    tell(errno_name(i), "%d", findings->refusals[i]);
    if (findings->refusals[i] > findings->refusals[most]) most = i;
  }
  tell("others", "%d", findings->other);
  return findings->other ? 0 : findings->tried ? (most ? most : kEmpty) : kUnsupported;
}

// A blank in a path is \040 there, and the like.
static void unescape(char* path) {
  char* to = path;
  for (const char* from = path; *from; ++to) {
    if (from[0] == '\\' && from[1] && from[2] && from[3]) {
      *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
      from += 4;
    } else {
      *to = *from++;
    }
  }
  *to = '\0';
}

static int write_mounts(const struct attempt* attempt) {
  struct findings findings = {.granted = attempt};
  char line[4096], path[kLongestPath];
  FILE* const table = fopen("/proc/self/mountinfo", "re");
  if (!table) return errno;
  while (fgets(line, sizeof line, table)) {
    if (sscanf(line, "%*s %*s %*s %*s %1023s", path) != 1) return kUnsupported;
    unescape(path);
    try_place(&findings, path);
  }
  fclose(table);
  return judged(&findings);
}

static int folders_left = kMostFolders;

static void try_tree(struct findings* findings, const char* path, int depth) {
  char below[kLongestPath];
  struct stat about;
  if (depth > kDeepest || folders_left-- <= 0) return;
  try_folder(findings, path);
  DIR* const folder = opendir(path);
  if (!folder) return;
  for (const struct dirent* entry; (entry = readdir(folder));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    const int size = snprintf(below, sizeof below, "%s/%s", strcmp(path, "/") == 0 ? "" : path, entry->d_name);
    if (size >= (int)sizeof below || lstat(below, &about) || S_ISLNK(about.st_mode)) continue;
    if (S_ISDIR(about.st_mode) && strcmp(below, "/proc") != 0) try_tree(findings, below, depth + 1);
    if (!S_ISDIR(about.st_mode)) try_file(findings, below, about.st_mode);
  }
  closedir(folder);
}

// Every directory and file below the root, but the kernel's own names in /proc, which write-proc tries.
static int write_tree(const struct attempt* attempt) {
  struct findings findings = {.granted = attempt};
  try_tree(&findings, "/", 0);
  return judged(&findings);
}

static int write_proc(const struct attempt* attempt) {
  static const struct attempt nothing;
  struct findings findings = {.granted = &nothing};
  (void)attempt;
  folders_left = kMostFolders;
  static const char* const kPlaces[] = {"/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/fs", "/proc/sys/net/core",
                                        "/proc/fs",         "/proc/irq",    "/proc/bus",    "/proc/acpi",
                                        "/proc/scsi",       "/proc/driver"};
  char path[kLongestPath];
  struct stat about;
  for (size_t i = 0; i < sizeof kPlaces / sizeof *kPlaces; ++i) {
    DIR* const folder = opendir(kPlaces[i]);
    if (!folder) continue;
    for (const struct dirent* entry; (entry = readdir(folder));) {
      if (snprintf(path, sizeof path, "%s/%s", kPlaces[i], entry->d_name) >= (int)sizeof path) continue;
      if (lstat(path, &about) == 0 && S_ISREG(about.st_mode)) try_file(&findings, path, about.st_mode);
    }
    closedir(folder);
  }
  return judged(&findings);
}

const struct verb kPlaceVerbs[] = {
    {"write-mounts", write_mounts},
    {"write-tree", write_tree},
    {"write-proc", write_proc},
    {0},
};
