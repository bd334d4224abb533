// Files of the root file system, the host's and the kernel's.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs.h"

static const char* path_of(const struct attempt* attempt) {
  return text_argument(attempt, 0, "/benchsand-absent");
}

static int opened(const char* path, int flags) {
  return outcome(open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600));
}

static int create_file(const struct attempt* attempt) {
  const int result = opened(path_of(attempt), O_WRONLY | O_CREAT | O_EXCL);
  if (result == 0) unlink(path_of(attempt));
  return result;
}

static int create_directory(const struct attempt* attempt) {
  const int result = outcome(mkdir(path_of(attempt), 0700));
  if (result == 0) rmdir(path_of(attempt));
  return result;
}

// Nothing is written: that it opens is enough.
static int open_for_writing(const struct attempt* attempt) {
  return opened(path_of(attempt), O_WRONLY);
}

static int open_for_both(const struct attempt* attempt) {
  return opened(path_of(attempt), O_RDWR);
}

static int open_for_reading(const struct attempt* attempt) {
  return opened(path_of(attempt), O_RDONLY);
}

// A masked file opens and is empty, so the number of bytes tells, not whether it opens.
static int read_file(const struct attempt* attempt) {
  char bytes[4096];
  const int file = open(path_of(attempt), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno;
  const ssize_t size = read(file, bytes, sizeof bytes);
  if (size < 0) return errno;
  if (size == 0) return kEmpty;
  tell("bytes", "%zd", size);
  tell_bytes("text", bytes, size > 64 ? 64 : (size_t)size);
  return 0;
}

static int list_directory(const struct attempt* attempt) {
  DIR* const folder = opendir(path_of(attempt));
  if (!folder) return errno;
  int count = 0;
  for (const struct dirent* entry; (entry = readdir(folder));)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && count++ == 0)
      tell_bytes("first", entry->d_name, strlen(entry->d_name));
  if (count == 0) return kEmpty;
  tell("entries", "%d", count);
  return 0;
}

static int look_at(const struct attempt* attempt) {
  struct stat about;
  return outcome(stat(path_of(attempt), &about));
}

static int remove_file(const struct attempt* attempt) {
  return outcome(unlink(path_of(attempt)));
}

static int remove_directory(const struct attempt* attempt) {
  return outcome(rmdir(path_of(attempt)));
}

// Onto itself, which changes nothing where it is allowed.
static int rename_onto_itself(const struct attempt* attempt) {
  return outcome(rename(path_of(attempt), path_of(attempt)));
}

static int change_mode(const struct attempt* attempt) {
  struct stat about;
  if (stat(path_of(attempt), &about)) return errno;
  return outcome(chmod(path_of(attempt), about.st_mode & 07777));
}

static int change_owner(const struct attempt* attempt) {
  return outcome(chown(path_of(attempt), 0, 0));
}

static int truncate_file(const struct attempt* attempt) {
  struct stat about;
  if (stat(path_of(attempt), &about)) return errno;
  return outcome(truncate(path_of(attempt), about.st_size));
}

static int touch_file(const struct attempt* attempt) {
  return outcome(syscall(SYS_utimensat, AT_FDCWD, path_of(attempt), NULL, 0L));
}

static int set_attribute(const struct attempt* attempt) {
  return outcome(syscall(SYS_setxattr, path_of(attempt), text_argument(attempt, 1, "user.benchsand"), "x", 1L, 0L));
}

static int make_fifo(const struct attempt* attempt) {
  return outcome(mkfifo(path_of(attempt), 0600));
}

static int make_device(const struct attempt* attempt, mode_t kind, dev_t device) {
  const int result = outcome(mknod(path_of(attempt), kind | 0600, device));
  if (result == 0) {
    const int opens = opened(path_of(attempt), O_RDONLY);
    tell("opens", "%s", opens ? errno_name(opens) : "ok");
    unlink(path_of(attempt));
  }
  return result;
}

static int make_character_device(const struct attempt* attempt) {
  return make_device(attempt, S_IFCHR, makedev(1, (unsigned)number_argument(attempt, 1, 1)));
}

static int make_block_device(const struct attempt* attempt) {
  return make_device(attempt, S_IFBLK, makedev(8, 0));
}

static int make_whiteout(const struct attempt* attempt) {
  return make_device(attempt, S_IFCHR, makedev(0, 0));
}

static int make_link(const struct attempt* attempt) {
  const char* const name = text_argument(attempt, 1, "/output/link");
  const int result = outcome(link(path_of(attempt), name));
  if (result == 0) unlink(name);
  return result;
}

static int make_symlink(const struct attempt* attempt) {
  const char* const name = text_argument(attempt, 1, "/output/symlink");
  const int result = outcome(symlink(path_of(attempt), name));
  if (result == 0) unlink(name);
  return result;
}

static int own_file(const char* path) {
  return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
}

static int set_setuid_bit(const struct attempt* attempt) {
  const int file = own_file(path_of(attempt));
  if (file < 0) return errno;
  const int result = outcome(chmod(path_of(attempt), 04755));
  unlink(path_of(attempt));
  return result;
}

static int give_to_root(const struct attempt* attempt) {
  const int file = own_file(path_of(attempt));
  if (file < 0) return errno;
  const int result = outcome(chown(path_of(attempt), 0, 0));
  unlink(path_of(attempt));
  return result;
}

static int map_executable(const struct attempt* attempt) {
  const int file = open(path_of(attempt), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED ? errno : 0;
}

static int make_writable_mapping(const struct attempt* attempt) {
  const int file = open(path_of(attempt), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED ? errno : 0;
}

const struct verb kFileVerbs[] = {
    {"create", create_file},
    {"mkdir", create_directory},
    {"open-write", open_for_writing},
    {"open-both", open_for_both},
    {"open-read", open_for_reading},
    {"read", read_file},
    {"list", list_directory},
    {"stat", look_at},
    {"unlink", remove_file},
    {"rmdir", remove_directory},
    {"rename", rename_onto_itself},
    {"chmod", change_mode},
    {"chown", change_owner},
    {"truncate", truncate_file},
    {"touch", touch_file},
    {"setxattr", set_attribute},
    {"mkfifo", make_fifo},
    {"mknod-char", make_character_device},
    {"mknod-block", make_block_device},
    {"mknod-whiteout", make_whiteout},
    {"link", make_link},
    {"symlink", make_symlink},
    {"setuid-bit", set_setuid_bit},
    {"chown-own", give_to_root},
    {"map-executable", map_executable},
    {"map-writable", make_writable_mapping},
    {0},
};
