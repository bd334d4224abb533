// Limits of disk, processes, processor time, descriptors and output. `ok` means that the whole amount was had.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs.h"

enum { kBlock = 1 << 16, kManyTasks = 4096 };
static char block[kBlock];

static double processor_seconds(void) {
  struct rusage own, children;
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  const struct timeval all[] = {own.ru_utime, own.ru_stime, children.ru_utime, children.ru_stime};
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += (double)all[i].tv_sec + (double)all[i].tv_usec / 1e6;
  return sum;
}

// fill:PATH:BYTES
static int fill(const struct attempt* attempt) {
  const char* const path = text_argument(attempt, 0, "/output/fill");
  const long long wanted = number_argument(attempt, 1, 65L << 20);
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  long long written = 0;
  int result = 0;
  while (written < wanted) {
    const ssize_t n = write(file, block, wanted - written < kBlock ? (size_t)(wanted - written) : kBlock);
    if (n < 0) result = errno;
    if (n <= 0) break;
    written += n;
  }
  tell("bytes", "%lld", written);
  return written == wanted ? 0 : result;
}

// files:FOLDER:COUNT[:keep]
static int many_files(const struct attempt* attempt) {
  char path[512];
  const long wanted = number_argument(attempt, 1, 100000);
  long made = 0;
  int result = 0;
  for (; made < wanted && result == 0; ++made) {
    snprintf(path, sizeof path, "%s/n%ld", text_argument(attempt, 0, "/output"), made);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
      result = errno;
    else
      close(file);
  }
  if (result) --made;
  tell("files", "%ld", made);
  for (long i = 0; attempt->count < 3 && i < made; ++i) {
    snprintf(path, sizeof path, "%s/n%ld", text_argument(attempt, 0, "/output"), i);
    unlink(path);
  }
  return result;
}

static int sparse(const struct attempt* attempt) {
  const int file = open(text_argument(attempt, 0, "/output/sparse"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  return file < 0 ? errno : outcome(ftruncate(file, number_argument(attempt, 1, 1L << 40)));
}

// Past a limit of its own, which the kernel answers with SIGXFSZ.
static int large_file(const struct attempt* attempt) {
  const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
  const int file = open(text_argument(attempt, 0, "/output/large"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  if (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, NULL)) return errno;
  while (write(file, block, sizeof block) > 0) {
  }
  return errno;
}

// All of them live until the last has been tried. They wait for the end of this process by a pipe that nobody writes into.
static int forks(const struct attempt* attempt) {
  const long wanted = number_argument(attempt, 0, 40);
  int hold[2], result = 0;
  long made = 0;
  if (pipe2(hold, O_CLOEXEC)) return errno;
  while (made < wanted && result == 0) {
    const pid_t child = fork();
    if (child < 0) result = errno;
    if (child == 0) {
      char byte;
      close(hold[1]);
      if (read(hold[0], &byte, 1) != 0) _exit(1);
      _exit(0);
    }
    made += child > 0;
  }
  tell("made", "%ld", made);
  close(hold[1]);
  while (waitpid(-1, NULL, 0) > 0) {
  }
  return result;
}

static void* sleep_forever(void* unused) {
  for (;;) nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
  return unused;
}

static int threads(const struct attempt* attempt) {
  const long wanted = number_argument(attempt, 0, 40);
  long made = 0;
  int result = 0;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1 << 16);
  for (; made < wanted; ++made) {
    pthread_t thread;
    result = pthread_create(&thread, &small, sleep_forever, NULL);
    if (result) break;
  }
  tell("made", "%ld", made);
  return result;
}

// Each child forks again and ends, so that the grandchild is an orphan; refused are those that find no room.
static int storm(const struct attempt* attempt) {
  const long wanted = number_argument(attempt, 0, 200);
  long made = 0, refused = 0;
  for (long i = 0; i < wanted; ++i) {
    const pid_t child = fork();
    if (child < 0) {
      ++refused;
      continue;
    }
    if (child == 0) {
      setsid();
      const pid_t orphan = fork();
      if (orphan == 0) nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
      _exit(orphan < 0 ? EAGAIN : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    made += 1 + (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    refused += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);  // until the last orphan has ended
  tell("made", "%ld", made);
  tell("refused", "%ld", refused);
  return refused ? EAGAIN : 0;
}

static void burn(double seconds) {
  volatile unsigned long counter = 0;
  const double start = processor_seconds();
  do
    for (int i = 0; i < 100000; ++i) ++counter;
  while (processor_seconds() - start < seconds);
}

static int spin(const struct attempt* attempt) {
  burn((double)number_argument(attempt, 0, 3000) / 1000);
  return 0;
}

// A limit of each process sees none of them reach it.
static int spin_in_children(const struct attempt* attempt) {
  const double wanted = (double)number_argument(attempt, 0, 3000) / 1000;
  while (processor_seconds() < wanted) {
    const pid_t child = fork();
    if (child < 0) return errno;
    if (child == 0) {
      burn(0.1);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  return 0;
}

static int spin_in_threads(const struct attempt* attempt) {
  const long count = number_argument(attempt, 1, 4);
  for (long i = 0; i < count; ++i)
    if (fork() == 0) {
      burn((double)number_argument(attempt, 0, 3000) / 1000 / (double)count);
      _exit(0);
    }
  while (waitpid(-1, NULL, 0) > 0) {
  }
  return 0;
}

// In the kernel, where no instruction of its own is counted.
static int spin_in_kernel(const struct attempt* attempt) {
  const double wanted = (double)number_argument(attempt, 0, 3000) / 1000;
  while (processor_seconds() < wanted)
    for (int i = 0; i < 100; ++i) getrandom(block, kBlock, 0);
  return 0;
}

static int sleep_long(const struct attempt* attempt) {
  const long ms = number_argument(attempt, 0, 1000);
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
  return 0;
}

static int many_descriptors(const struct attempt* attempt) {
  const long wanted = number_argument(attempt, 0, 100000);
  long made = 0;
  while (made < wanted && dup(2) >= 0) ++made;
  tell("made", "%ld", made);
  return made < wanted ? errno : 0;
}

// flood:DESCRIPTOR:BYTES
static int flood(const struct attempt* attempt) {
  const int to = (int)number_argument(attempt, 0, 2);
  const long long wanted = number_argument(attempt, 1, 4L << 20);
  long long written = 0;
  memset(block, 'x', sizeof block);
  for (ssize_t n; written < wanted && (n = write(to, block, kBlock)) > 0;) written += n;
  tell("bytes", "%lld", written);
  return written < wanted ? errno : 0;
}

// With RLIMIT_CORE at its granted value: the file `core`, if there is one, is in the working directory.
static int crash(const struct attempt* attempt) {
  (void)attempt;
  raise(SIGSEGV);
  return 0;
}

const struct verb kLimitVerbs[] = {
    {"fill", fill},
    {"files", many_files},
    {"sparse", sparse},
    {"file-size", large_file},
    {"forks", forks},
    {"threads", threads},
    {"storm", storm},
    {"spin", spin},
    {"spin-children", spin_in_children},
    {"spin-parallel", spin_in_threads},
    {"spin-kernel", spin_in_kernel},
    {"sleep", sleep_long},
    {"many-descriptors", many_descriptors},
    {"flood", flood},
    {"crash", crash},
    {0},
};
