// What a candidate can leave in the output for whoever collects it. Nothing is removed: the host has to meet it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs.h"

static const char* folder_of(const struct attempt* attempt) {
  return text_argument(attempt, 0, "/output");
}

// leave-symlink:FOLDER:TARGET
static int leave_symlink(const struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "%s/left-symlink", folder_of(attempt));
  return outcome(symlink(text_argument(attempt, 1, "/etc/shadow"), path));
}

// Two names of one file, or of a file of the root file system.
static int leave_hard_link(const struct attempt* attempt) {
  char first[512], second[512];
  snprintf(first, sizeof first, "%s/left-first", folder_of(attempt));
  snprintf(second, sizeof second, "%s/left-second", folder_of(attempt));
  const int file = open(first, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  return outcome(link(text_argument(attempt, 1, first), second));
}

static int leave_fifo(const struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "%s/left-fifo", folder_of(attempt));
  return outcome(mkfifo(path, 0600));
}

static int leave_socket(const struct attempt* attempt) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s/left-socket", folder_of(attempt));
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return errno;
  return outcome(bind(file, (const struct sockaddr*)&address, sizeof address));
}

static int leave_setuid(const struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "%s/left-setuid", folder_of(attempt));
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
  if (file < 0) return errno;
  if (write(file, "#!/bin/sh\n", 10) != 10) return errno;
  return outcome(chmod(path, 06755));
}

static int leave_sparse(const struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "%s/left-sparse", folder_of(attempt));
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  return file < 0 ? errno : outcome(ftruncate(file, number_argument(attempt, 1, 1L << 40)));
}

// leave-deep:FOLDER:DEPTH
static int leave_deep(const struct attempt* attempt) {
  const long wanted = number_argument(attempt, 1, 200);
  if (chdir(folder_of(attempt))) return errno;
  for (long depth = 0; depth < wanted; ++depth) {
    if (mkdir("d", 0700) || chdir("d")) {
      tell("depth", "%ld", depth);
      return errno;
    }
  }
  const int file = open("leaf", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  return outcome(file);
}

static int leave_names(const struct attempt* attempt) {
  static const char* const kNames[] = {"a\nb", "\033[2J", "\xff\xfe", "::error::x", " ",
                                       "-rf",  "a\\b",    "%0A",      "\"'`$(x)"};
  if (chdir(folder_of(attempt))) return errno;
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    const int file = open(kNames[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    close(file);
  }
  return 0;
}

static int leave_long_name(const struct attempt* attempt) {
  char name[257];
  if (chdir(folder_of(attempt))) return errno;
  memset(name, 'n', sizeof name);
  name[255] = '\0';
  return outcome(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int leave_unreadable(const struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "%s/left-unreadable", folder_of(attempt));
  return outcome(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0));
}

// leave-file:PATH:TEXT
static int leave_file(const struct attempt* attempt) {
  const char* const text = text_argument(attempt, 1, "x");
  const int file = open(text_argument(attempt, 0, "/output/left"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  return write(file, text, strlen(text)) < 0 ? errno : 0;
}

const struct verb kOutputVerbs[] = {
    {"leave-symlink", leave_symlink},     {"leave-hard-link", leave_hard_link},
    {"leave-fifo", leave_fifo},           {"leave-socket", leave_socket},
    {"leave-setuid", leave_setuid},       {"leave-sparse", leave_sparse},
    {"leave-deep", leave_deep},           {"leave-names", leave_names},
    {"leave-long-name", leave_long_name}, {"leave-unreadable", leave_unreadable},
    {"leave-file", leave_file},           {0},
};
