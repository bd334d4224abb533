// Ordinary programs of a distribution, as a candidate would call them: `program NAME COMMAND LINE`. What they say is their own; the
// host counts what they tried.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs.h"

enum { kLastWords = 400, kLongestPath = 4096 };

static const char kShell[] = "/bin/sh";

static int is_there(const char* name) {
  char path[kLongestPath];
  const char* folder = getenv("PATH");
  while (folder) {
    const char* const end = strchrnul(folder, ':');
    snprintf(path, sizeof path, "%.*s/%s", (int)(end - folder), folder, name);
    if (access(path, X_OK) == 0) return 1;
    folder = *end ? end + 1 : NULL;
  }
  return 0;
}

// The end of all that comes through the pipe, in `words`, which holds that many bytes; how many there are.
static size_t last_words(int from, char* words) {
  char piece[kLastWords];
  size_t have = 0;
  for (;;) {
    const ssize_t n = read(from, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return have;
    const size_t more = (size_t)n, kept = have + more > kLastWords ? kLastWords - more : have;
    memmove(words, words + have - kept, kept);
    memcpy(words + kept, piece, more);
    have = kept + more;
  }
}

static void run_shell(const char* command, int output) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(126);
  execl(kShell, kShell, "-c", command, (char*)NULL);
  _exit(126);
}

int run_program(char* name) {
  char words[kLastWords];
  int ends[2], status = 0;
  char* const command = strchr(name, ' ');
  if (!command) return kUnsupported;
  *command = '\0';
  if (access(kShell, X_OK) || !is_there(name)) return kMissing;
  if (pipe2(ends, O_CLOEXEC)) return errno;
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) run_shell(command + 1, ends[1]);
  close(ends[1]);
  tell_line(words, last_words(ends[0], words));
  if (waitpid(child, &status, 0) != child) return errno;
  if (WIFSIGNALED(status)) return kExited + 128 + WTERMSIG(status);  // as a shell says it
  return WEXITSTATUS(status) == 0 ? 0 : kExited + WEXITSTATUS(status);
}
