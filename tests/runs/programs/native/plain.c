/* A C program: processes, pipes, signals, timers, memory, directories, sockets of its own. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;
static volatile sig_atomic_t alarms;
static void on_alarm(int number) {
  (void)number;
  ++alarms;
}
static void* in_thread(void* argument) {
  *(int*)argument = 42;
  return argument;
}

#define MUST(condition)                                                     \
  do {                                                                      \
    if (!(condition)) {                                                     \
      printf("%d: %s: %s\n", __LINE__, #condition, strerrorname_np(errno)); \
      return 1;                                                             \
    }                                                                       \
  } while (0)

int main(void) {
  int ends[2], status, answer = 0;
  char text[64] = "";
  MUST(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) _exit(write(ends[1], "child", 5) == 5 ? 3 : 1);
  MUST(read(ends[0], text, sizeof text) == 5 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  pid_t spawned;
  char* arguments[] = {"sh", "-c", "exit 4", NULL};
  MUST(posix_spawnp(&spawned, "sh", NULL, NULL, arguments, environ) == 0 && waitpid(spawned, &status, 0) == spawned &&
       WEXITSTATUS(status) == 4);
  MUST(WEXITSTATUS(system("exit 5")) == 5);
  FILE* stream = popen("echo from popen", "r");
  MUST(stream && fgets(text, sizeof text, stream) && pclose(stream) == 0);

  signal(SIGALRM, on_alarm);
  const struct itimerval soon = {{0, 0}, {0, 1000}};
  MUST(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  while (alarms == 0) pause();
  MUST(raise(SIGALRM) == 0 && alarms == 2);
  pthread_t thread;
  MUST(pthread_create(&thread, NULL, in_thread, &answer) == 0 && pthread_join(thread, NULL) == 0 && answer == 42);

  const int file = open("file", O_RDWR | O_CREAT | O_EXCL, 0600);
  MUST(file >= 0 && ftruncate(file, 8192) == 0 && pwrite(file, "x", 1, 4096) == 1 && fsync(file) == 0 &&
       fdatasync(file) == 0);
  char* shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MUST(shared != MAP_FAILED && shared[4096] == 'x' && msync(shared, 8192, MS_SYNC) == 0);
  shared = mremap(shared, 8192, 4096, MREMAP_MAYMOVE);
  MUST(shared != MAP_FAILED && munmap(shared, 4096) == 0);
  MUST(mkdir("folder", 0700) == 0 && rename("file", "folder/file") == 0 && symlink("file", "folder/link") == 0 &&
       link("folder/file", "folder/other") == 0);
  MUST(chmod("folder/file", 0640) == 0 && utimensat(AT_FDCWD, "folder/file", NULL, 0) == 0 &&
       truncate("folder/file", 10) == 0);
  struct stat facts;
  MUST(lstat("folder/link", &facts) == 0 && S_ISLNK(facts.st_mode) && readlink("folder/link", text, sizeof text) == 4);
  DIR* folder = opendir("folder");
  int entries = 0;
  while (readdir(folder)) ++entries;
  MUST(entries == 5 && closedir(folder) == 0);
  MUST(unlink("folder/link") == 0 && unlink("folder/other") == 0 && unlink("folder/file") == 0 && rmdir("folder") == 0);
  FILE* temporary = tmpfile();
  (void)temporary; /* there is no /tmp: NULL is an answer too */

  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && send(pair[0], "hi", 2, 0) == 2 &&
       recv(pair[1], text, sizeof text, 0) == 2);
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
  MUST(server >= 0 && client >= 0 && bind(server, (struct sockaddr*)&address, sizeof address) == 0 &&
       listen(server, 1) == 0);
  MUST(connect(client, (struct sockaddr*)&address, sizeof address) == 0);
  struct pollfd wait = {server, POLLIN, 0};
  MUST(poll(&wait, 1, 1000) == 1 && accept(server, NULL, NULL) >= 0 && unlink("socket") == 0);

  struct timespec now, little = {0, 1000000};
  struct rusage used;
  struct rlimit limit;
  MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0 && nanosleep(&little, NULL) == 0 &&
       getrusage(RUSAGE_SELF, &used) == 0);
  MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0 && sysconf(_SC_NPROCESSORS_ONLN) > 0 &&
       getloadavg((double[3]){0}, 3) != 0);
  puts("all went well");
  return 0;
}
