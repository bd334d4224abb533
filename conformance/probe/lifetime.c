// Living on after the run's end. What stays is not of the attempt's process group, so the probe does not end it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs.h"

static void ignore_signals(void) {
  for (int number = 1; number < 65; ++number) signal(number, SIG_IGN);
}

static void wait_ms(long ms) {
  const double until = seconds_now() + (double)ms / 1000;
  while (seconds_now() < until) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void leave_word(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || write(file, "alive\n", 6) != 6) _exit(1);
  close(file);
}

// daemonise:PATH:MS[:hold]: after MS milliseconds a word in PATH says that it lived. hold: it keeps stdout and stderr open.
static int daemonise(const struct attempt* attempt) {
  const char* const path = text_argument(attempt, 0, "/output/alive");
  const int hold = attempt->count > 2;
  const pid_t first = fork();
  if (first < 0) return errno;
  if (first > 0) return outcome_of_child(first);
  if (setsid() < 0) _exit(errno);
  const pid_t second = fork();
  if (second != 0) _exit(second < 0 ? errno : 0);
  ignore_signals();
  for (int file = hold ? 3 : 0; file < 64; ++file) close(file);
  wait_ms(number_argument(attempt, 1, 2000));
  leave_word(path);
  _exit(0);
}

// The deadline ends it, or the host.
static int stop_self(const struct attempt* attempt) {
  (void)attempt;
  kill(getpid(), SIGSTOP);
  return 0;
}

// A stopped process of a session of its own: it handles no signal but the one that cannot be handled.
static int leave_stopped(const struct attempt* attempt) {
  (void)attempt;
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    setsid();
    for (;;) kill(getpid(), SIGSTOP);
  }
  int status = 0;
  return waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status) ? 0 : EINTR;
}

static int ignore_and_wait(const struct attempt* attempt) {
  ignore_signals();
  wait_ms(number_argument(attempt, 0, 60000));
  return 0;
}

// leave-many:COUNT: so many processes, each in a session of its own
static int leave_many(const struct attempt* attempt) {
  const long wanted = number_argument(attempt, 0, 8);
  long made = 0;
  for (; made < wanted; ++made) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child == 0) {
      setsid();
      ignore_signals();
      for (;;) nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
    }
  }
  tell("made", "%ld", made);
  return made == wanted ? 0 : errno;
}

const struct verb kLifetimeVerbs[] = {
    {"daemonise", daemonise},         {"stop-self", stop_self},
    {"leave-stopped", leave_stopped}, {"ignore-signals", ignore_and_wait},
    {"leave-many", leave_many},       {0},
};
