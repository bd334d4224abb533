// Memory, in every way in which the kernel can be made to hold some. VERB:BYTES; `ok` means that all of it was had.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs.h"

enum { kPage = 4096, kMebibyte = 1 << 20, kMostChildren = 16 };

static long long wanted(const struct attempt* attempt, int index) {
  return number_argument(attempt, index, 300L << 20);
}

static int touched(long long bytes, int flags) {
  for (long long had = 0; had < bytes; had += kMebibyte) {
    char* const part = mmap(NULL, kMebibyte, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    if (part == MAP_FAILED) {
      tell("bytes", "%lld", had);
      return errno;
    }
    for (int at = 0; at < kMebibyte; at += kPage) part[at] = 1;
  }
  tell("bytes", "%lld", bytes);
  return 0;
}

static int allocate(const struct attempt* attempt) {
  return touched(wanted(attempt, 0), MAP_PRIVATE);
}

static int allocate_shared(const struct attempt* attempt) {
  return touched(wanted(attempt, 0), MAP_SHARED);
}

// allocate-children:BYTES:COUNT, the bytes in all; how many of them were killed. Each holds its share until every other one has its
// own or is dead.
static int allocate_in_children(const struct attempt* attempt) {
  const long count = number_argument(attempt, 1, 4);
  int hold[2], ready[2];
  long killed = 0, settled = 0;
  if (pipe2(hold, O_CLOEXEC) || pipe2(ready, O_CLOEXEC | O_NONBLOCK)) return errno;
  for (long i = 0; i < count && i < kMostChildren; ++i) {
    const pid_t child = fork();
    if (child < 0) return errno;
    if (child == 0) {
      char byte = 0;
      close(hold[1]);
      const int result = touched(wanted(attempt, 0) / count, MAP_PRIVATE);
      if (write(ready[1], &byte, 1) != 1 || read(hold[0], &byte, 1) < 0) _exit(1);
      _exit(result ? 1 : 0);
    }
  }
  while (settled < count) {
    char byte;
    int status;
    while (read(ready[0], &byte, 1) == 1) ++settled;
    while (waitpid(-1, &status, WNOHANG) > 0) {
      killed += WIFSIGNALED(status);
      ++settled;
    }
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  close(hold[1]);
  for (int status; wait(&status) > 0;) killed += WIFSIGNALED(status);
  tell("killed", "%ld", killed);
  return killed ? ENOMEM : 0;
}

// memory-file:BYTES:PATH: a file in a file system that lives in memory
static int in_file(const struct attempt* attempt) {
  static char part[kMebibyte];
  const int file = open(text_argument(attempt, 1, "/output/memory"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  long long had = 0;
  int result = 0;
  while (had < wanted(attempt, 0) && result == 0) {
    const ssize_t n = write(file, part, sizeof part);
    if (n < 0)
      result = errno;
    else
      had += n;
  }
  tell("bytes", "%lld", had);
  unlink(text_argument(attempt, 1, "/output/memory"));
  return result;
}

struct tally {
  long long bytes;
  int error;
};

static struct tally fill_ends(int (*make)(int[2]), long long bytes) {
  static char part[kPage];
  struct tally had = {0, 0};
  for (int ends[2]; had.bytes < bytes && had.error == 0;) {
    if (make(ends)) had.error = errno;
    for (ssize_t n; had.error == 0 && had.bytes < bytes && (n = write(ends[1], part, sizeof part)) > 0;) had.bytes += n;
  }
  return had;
}

static int make_pipe(int ends[2]) {
  return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}

static int make_sockets(int ends[2]) {
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

// One process has too few descriptors, so several do it at a time and hold what they have until all are done.
static int in_ends(const struct attempt* attempt, int (*make)(int[2])) {
  const long count = number_argument(attempt, 1, kMostChildren);
  const long long bytes = wanted(attempt, 0);
  int hold[2], tally[2];
  struct tally sum = {0, 0}, one;
  if (pipe2(hold, O_CLOEXEC) || pipe2(tally, O_CLOEXEC)) return errno;
  for (long i = 0; i < count; ++i) {
    if (fork() != 0) continue;
    char byte;
    close(hold[1]);
    one = fill_ends(make, bytes / count);
    if (write(tally[1], &one, sizeof one) != (ssize_t)sizeof one || read(hold[0], &byte, 1) < 0) _exit(1);
    _exit(0);
  }
  close(tally[1]);
  for (long i = 0; i < count && read(tally[0], &one, sizeof one) == (ssize_t)sizeof one; ++i) {
    sum.bytes += one.bytes;
    if (one.error) sum.error = one.error;
  }
  close(hold[1]);
  while (wait(NULL) > 0) {
  }
  tell("bytes", "%lld", sum.bytes);
  return sum.bytes >= bytes ? 0 : sum.error;
}

static int in_pipes(const struct attempt* attempt) {
  return in_ends(attempt, make_pipe);
}

static int in_sockets(const struct attempt* attempt) {
  return in_ends(attempt, make_sockets);
}

// A page of a table is needed for every 2 MiB of addresses, whatever little lies in them.
static int in_page_tables(const struct attempt* attempt) {
  const long long tables = wanted(attempt, 0) / kPage;
  const size_t apart = 2 << 20;
  for (long long i = 0; i < tables; ++i) {
    char* const page = mmap((void*)(0x100000000000UL + (size_t)i * apart), kPage, PROT_READ,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == MAP_FAILED) {
      tell("tables", "%lld", i);
      return errno;
    }
    (void)*(volatile char*)page;  // the page of zeros, which is everybody's
  }
  tell("tables", "%lld", tables);
  return 0;
}

static int lock_memory(const struct attempt* attempt) {
  static char page[kPage];
  (void)attempt;
  return outcome(mlock(page, sizeof page));
}

// deep-stack:QUARTERS of a mebibyte
static int deep_stack(const struct attempt* attempt) {
  static long depth = 0;
  volatile char here[kMebibyte / 4];
  here[0] = here[sizeof here - 1] = 1;
  if (++depth >= number_argument(attempt, 0, 1024)) return 0;
  const int result = deep_stack(attempt);
  return here[0] == 1 ? result : kUnsupported;  // so that the frame is needed after the call
}

const struct verb kMemoryVerbs[] = {
    {"allocate", allocate},
    {"allocate-shared", allocate_shared},
    {"allocate-children", allocate_in_children},
    {"memory-file", in_file},
    {"memory-pipes", in_pipes},
    {"memory-sockets", in_sockets},
    {"memory-page-tables", in_page_tables},
    {"memory-lock", lock_memory},
    {"deep-stack", deep_stack},
    {0},
};
