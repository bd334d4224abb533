// usage: probe [--deadline MS] VERB[:ARG[:ARG…]]… | "program NAME COMMAND LINE"…
// Each verb is attempted in a child of its own. A line for each, whole or not at all: VERB[:ARG…] TAB OUTCOME [TAB DETAIL].
// OUTCOME is ok, empty, an errno's name, the name of the signal that the child died of, timeout, or unsupported; of a program
// missing, or exit-STATUS. The last line is
// `end TAB ok`: without it the answer is not whole. An argument with colons stands in brackets: connect:[::1]:80.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs.h"

enum { kLongestDetail = 1500, kLongestVerb = 1000, kSliceMs = 2 };

struct report {
  int outcome;
  char detail[kLongestDetail];
};

static struct report report;  // of the child that attempts
int report_descriptor = -1;

static const struct verb* const kVerbs[] = {kFileVerbs,      kPlaceVerbs,   kMountVerbs,    kNamespaceVerbs,
                                            kPrivilegeVerbs, kProcessVerbs, kKernelVerbs,   kNetworkVerbs,
                                            kIpcVerbs,       kLeakVerbs,    kFactVerbs,     kLimitVerbs,
                                            kMemoryVerbs,    kOutputVerbs,  kLifetimeVerbs, kRareVerbs};
static const struct plain_call* const kCalls[] = {kKernelCalls, kPrivilegeCalls, kMountCalls, kProcessCalls};

void tell_bytes(const char* key, const char* bytes, size_t count) {
  char* const detail = report.detail;
  size_t used = strlen(detail);
  if (used + strlen(key) + 8 > sizeof report.detail) return;
  used += (size_t)snprintf(detail + used, sizeof report.detail - used, "%s%s=", used ? " " : "", key);
  for (size_t i = 0; i < count && used + 8 < sizeof report.detail; ++i) {
    const unsigned char byte = (unsigned char)bytes[i];
    const int plain = byte > ' ' && byte < 0x7f && byte != '\\';
    used += (size_t)snprintf(detail + used, sizeof report.detail - used, plain ? "%c" : "\\x%02x", byte);
  }
}

void tell(const char* key, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  tell_bytes(key, text, strlen(text));
}

void tell_line(const char* bytes, size_t count) {
  char* const detail = report.detail;
  size_t used = 0;
  for (size_t i = 0; i < count && used + 8 < sizeof report.detail; ++i) {
    const unsigned char byte = bytes[i] == '\n' || bytes[i] == '\r' ? ' ' : (unsigned char)bytes[i];
    const int plain = byte >= ' ' && byte < 0x7f && byte != '\\';
    if (byte == ' ' && (used == 0 || detail[used - 1] == ' ')) continue;
    used += (size_t)snprintf(detail + used, sizeof report.detail - used, plain ? "%c" : "\\x%02x", byte);
  }
  while (used > 0 && detail[used - 1] == ' ') detail[--used] = '\0';
}

int outcome(long result) {
  return result < 0 ? errno : 0;
}

const char* text_argument(const struct attempt* attempt, int index, const char* otherwise) {
  return index < attempt->count ? attempt->arguments[index] : otherwise;
}

long number_argument(const struct attempt* attempt, int index, long otherwise) {
  return index < attempt->count ? strtol(attempt->arguments[index], NULL, 0) : otherwise;
}

double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const char* signal_name(int number) {
  static char name[32];
  const char* const short_name = sigabbrev_np(number);
  snprintf(name, sizeof name, short_name ? "SIG%s" : "SIG", short_name);
  if (!short_name) snprintf(name, sizeof name, "SIG%d", number);
  return name;
}

const char* errno_name(int number) {
  static char name[32];
  const char* const known = strerrorname_np(number);
  if (known) return known;
  snprintf(name, sizeof name, "E%d", number);
  return name;
}

int outcome_of_child(int pid) {
  int status = 0;
  if (waitpid(pid, &status, __WALL) != pid) return errno;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  tell("died", "%s", signal_name(WTERMSIG(status)));
  return EINTR;
}

// In place: the colons become ends of strings.
static int split(char* text, struct attempt* attempt) {
  char* at = strchr(text, ':');
  attempt->count = 0;
  while (at) {
    *at++ = '\0';
    if (attempt->count == kMostArguments) return -1;
    char* end = at;
    if (*at == '[') {
      ++at;
      end = strchr(at, ']');
      if (!end) return -1;
      *end++ = '\0';
      if (*end != '\0' && *end != ':') return -1;
    }
    attempt->arguments[attempt->count++] = at;
    at = strchr(end, ':');
  }
  return 0;
}

static int make_attempt(const char* name, const struct attempt* attempt) {
  for (size_t group = 0; group < sizeof kVerbs / sizeof *kVerbs; ++group)
    for (const struct verb* verb = kVerbs[group]; verb->name; ++verb)
      if (strcmp(name, verb->name) == 0) return verb->attempt(attempt);
  for (size_t group = 0; group < sizeof kCalls / sizeof *kCalls; ++group)
    for (const struct plain_call* plain = kCalls[group]; plain->name; ++plain) {
      if (strcmp(name, plain->name) != 0) continue;
      const long* const a = plain->arguments;
      return outcome(syscall(plain->number, a[0], a[1], a[2], a[3], a[4], a[5]));
    }
  return kUnsupported;
}

static int attempt_text(char* text) {
  static const char program[] = "program ";
  if (strncmp(text, program, sizeof program - 1) == 0) return run_program(text + sizeof program - 1);
  struct attempt attempt;
  return split(text, &attempt) ? kUnsupported : make_attempt(text, &attempt);
}

static void attempt_in_child(const char* text) {
  char copy[kLongestVerb];
  setpgid(0, 0);
  snprintf(copy, sizeof copy, "%s", text);
  report.outcome = attempt_text(copy);
  if (write(report_descriptor, &report, sizeof report) != (ssize_t)sizeof report) _exit(1);
  _exit(0);
}

static const char* outcome_name(int number) {
  static char exited[32];
  if (number == 0) return "ok";
  if (number == kEmpty) return "empty";
  if (number == kUnsupported) return "unsupported";
  if (number == kMissing) return "missing";
  snprintf(exited, sizeof exited, "exit-%d", number - kExited);
  if (number > kExited) return exited;
  return errno_name(number);
}

// A descendant may hold the pipe open, and the child may stop itself, so neither its end nor the pipe's is waited for alone.
static const char* wait_for(pid_t child, int from, long deadline_ms, struct report* got) {
  const double until = seconds_now() + (double)deadline_ms / 1000;
  int status = 0, has = 0;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    struct pollfd one = {.fd = from, .events = POLLIN};
    if (!has && poll(&one, 1, ended == child ? 0 : kSliceMs) > 0 && (one.revents & POLLIN))
      has = read(from, got, sizeof *got) == (ssize_t)sizeof *got;
    else if (has && ended == 0)
      nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    if (ended == child) break;
    if (seconds_now() > until) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "timeout";
    }
  }
  if (WIFSIGNALED(status)) return signal_name(WTERMSIG(status));
  return has ? outcome_name(got->outcome) : "unsupported";
}

static void print_line(const char* verb, const char* result, const char* detail) {
  char line[kLongestVerb + kLongestDetail + 64];
  const int size = snprintf(line, sizeof line, "%s\t%s%s%s\n", verb, result, *detail ? "\t" : "", detail);
  for (int written = 0; written < size;) {
    const ssize_t n = write(1, line + written, (size_t)(size - written));
    if (n < 0) _exit(1);
    written += (int)n;
  }
}

static void attempt_verb(const char* text, long deadline_ms) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return print_line(text, "unsupported", "probe=pipe");
  const pid_t child = fork();
  if (child < 0) {
    print_line(text, "unsupported", "probe=fork");
  } else if (child == 0) {
    close(ends[0]);
    report_descriptor = ends[1];
    attempt_in_child(text);
  } else {
    struct report got = {0};
    close(ends[1]);
    const char* const result = wait_for(child, ends[0], deadline_ms, &got);
    got.detail[sizeof got.detail - 1] = '\0';
    kill(-child, SIGKILL);  // what is left of its process group
    print_line(text, result, got.detail);
  }
  close(ends[0]);
  while (waitpid(-1, NULL, WNOHANG) > 0) {  // orphans, where the probe is the first process
  }
}

int main(int argc, char** argv) {
  long deadline_ms = 3000;
  signal(SIGPIPE, SIG_IGN);
  if (argc == 2 && strcmp(argv[1], "--effective-root") == 0) return geteuid() == 0 ? 0 : EPERM;  // see setuid-program
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--deadline") == 0 && i + 1 < argc)
      deadline_ms = strtol(argv[++i], NULL, 10);
    else
      attempt_verb(argv[i], deadline_ms);
  }
  print_line("end", "ok", "");
  return 0;
}
