// What benchsand does not claim to hide: facts about the host that any program can see or measure.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "verbs.h"

static int kernel_release(const struct attempt* attempt) {
  (void)attempt;
  struct utsname names;
  if (uname(&names)) return errno;
  tell("release", "%s", names.release);
  return names.release[0] ? 0 : kEmpty;
}

// line-of:PATH:START: the first line of a file of the kernel that begins so
static int line_of(const struct attempt* attempt) {
  char line[512];
  const char* const start = text_argument(attempt, 1, "");
  FILE* const file = fopen(text_argument(attempt, 0, "/proc/version"), "re");
  if (!file) return errno;
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, start, strlen(start)) != 0) continue;
    tell_bytes("line", line, strcspn(line, "\n"));
    fclose(file);
    return 0;
  }
  fclose(file);
  return kEmpty;
}

static int system_numbers(const struct attempt* attempt) {
  (void)attempt;
  struct sysinfo info;
  if (sysinfo(&info)) return errno;
  tell("uptime_s", "%ld", info.uptime);
  tell("memory_bytes", "%llu", (unsigned long long)info.totalram * info.mem_unit);
  tell("load", "%lu", info.loads[0]);
  return info.uptime ? 0 : kEmpty;
}

// A clock that is finer than a tenth of a millisecond is enough to measure a neighbour by.
static int fine_clock(const struct attempt* attempt) {
  (void)attempt;
  struct timespec first, next;
  long smallest = 1000000;
  for (int i = 0; i < 10000; ++i) {
    clock_gettime(CLOCK_MONOTONIC, &first);
    do clock_gettime(CLOCK_MONOTONIC, &next);
    while (next.tv_nsec == first.tv_nsec && next.tv_sec == first.tv_sec);
    const long step = (next.tv_sec - first.tv_sec) * 1000000000 + next.tv_nsec - first.tv_nsec;
    if (step < smallest) smallest = step;
  }
  tell("step_ns", "%ld", smallest);
  return smallest < 100000 ? 0 : kEmpty;
}

static int wall_clock(const struct attempt* attempt) {
  (void)attempt;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return errno;
  tell("seconds", "%ld", (long)now.tv_sec);
  return 0;
}

static int processors(const struct attempt* attempt) {
  (void)attempt;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set)) return errno;
  tell("processors", "%d", CPU_COUNT(&set));
  return 0;
}

// Instructions that no filter and no file system stands before.
static int processor_instruction(const struct attempt* attempt) {
  (void)attempt;
#ifdef __x86_64__
  unsigned a = 0, name[4] = {0};
  if (!__get_cpuid(0, &a, &name[0], &name[2], &name[1])) return kEmpty;
  tell_bytes("vendor", (const char*)name, 12);
  return 0;
#else
  return kUnsupported;
#endif
}

static int cycle_counter(const struct attempt* attempt) {
  (void)attempt;
#ifdef __x86_64__
  const uint64_t first = __rdtsc();
  const uint64_t next = __rdtsc();
  tell("cycles", "%llu", (unsigned long long)(next - first));
  return next > first ? 0 : kEmpty;
#else
  return kUnsupported;
#endif
}

// Whether a page is in the host's cache: somebody read that file lately.
static int page_cache(const struct attempt* attempt) {
  char byte;
  const int file = open(text_argument(attempt, 0, "/proc/self/exe"), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const double start = seconds_now();
  if (pread(file, &byte, 1, 0) != 1) return errno;
  tell("us", "%ld", (long)((seconds_now() - start) * 1e6));
  return 0;
}

const struct verb kFactVerbs[] = {
    {"kernel-release", kernel_release}, {"line-of", line_of},
    {"sysinfo", system_numbers},        {"fine-clock", fine_clock},
    {"wall-clock", wall_clock},         {"processors", processors},
    {"cpuid", processor_instruction},   {"cycle-counter", cycle_counter},
    {"page-cache", page_cache},         {0},
};
