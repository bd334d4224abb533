// Other processes, other ABIs, terminals.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs.h"

#define P(x) ((long)(x))

enum { kX32 = 0x40000000, kPidfdOpen = 434, kPidfdGetfd = 438, kProcessMadvise = 440, kProcessMrelease = 448 };

static char typed[] = "x";
static long own_base;

const struct plain_call kProcessCalls[] = {
    {"ptrace-me", SYS_ptrace, {PTRACE_TRACEME, 0, 0, 0}},
    {"move-pages", SYS_move_pages, {0, 0, 0, 0, 0, 0}},
    {"migrate-pages", SYS_migrate_pages, {0, 0, 0, 0}},
    {"process-madvise", kProcessMadvise, {-1, 0, 0, 20, 0}},
    {"process-mrelease", kProcessMrelease, {-1, 0}},
    {"tiocsti", SYS_ioctl, {0, TIOCSTI, P(typed)}},
    {"tiocsti-high", SYS_ioctl, {0, TIOCSTI | (1L << 32), P(typed)}},
    {"tioclinux", SYS_ioctl, {0, TIOCLINUX, P(typed)}},
    {"tiocsctty", SYS_ioctl, {0, TIOCSCTTY, 0}},
    {"fibmap", SYS_ioctl, {-1, 1, P(typed)}},
    {"x32", kX32 | SYS_getpid, {0}},
    {"record-lock", SYS_fcntl, {-1, F_SETLK, 0}},
    {"lease", SYS_fcntl, {-1, F_SETLEASE, F_RDLCK}},
    {"set-owner", SYS_fcntl, {-1, F_SETOWN, 1}},
    {"pipe-size", SYS_fcntl, {-1, F_SETPIPE_SZ, 4096}},
    {"arch-prctl-get", SYS_arch_prctl, {0x1003, P(&own_base)}},
    {0},
};

// The parent, the probe itself, stands for every other process: it is one that would be allowed.
static pid_t other(const struct attempt* attempt) {
  return (pid_t)number_argument(attempt, 0, getppid());
}

// The end of this process lets it go again.
static int seize(const struct attempt* attempt) {
  return outcome(ptrace(PTRACE_SEIZE, other(attempt), NULL, NULL));
}

static int attach(const struct attempt* attempt) {
  (void)attempt;
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    for (;;) nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
  }
  const int result = outcome(ptrace(PTRACE_SEIZE, child, NULL, NULL));
  kill(child, SIGKILL);
  waitpid(child, NULL, __WALL);
  return result;
}

static long copy_memory(long number, pid_t pid) {
  char here[8] = {0};
  struct iovec local = {.iov_base = here, .iov_len = sizeof here};
  struct iovec remote = {.iov_base = typed, .iov_len = 1};  // the same program, so the same address
  return syscall(number, (long)pid, &local, 1L, &remote, 1L, 0L);
}

static int read_memory(const struct attempt* attempt) {
  return outcome(copy_memory(SYS_process_vm_readv, other(attempt)));
}

static int write_memory(const struct attempt* attempt) {
  char same[1] = {typed[0]};
  struct iovec local = {.iov_base = same, .iov_len = 1}, remote = {.iov_base = typed, .iov_len = 1};
  return outcome(syscall(SYS_process_vm_writev, (long)other(attempt), &local, 1L, &remote, 1L, 0L));
}

static int pidfd(const struct attempt* attempt) {
  return outcome(syscall(kPidfdOpen, (long)other(attempt), 0L));
}

// The calls of a number that is no descriptor: behind the gate comes EBADF.
static int pidfd_getfd(const struct attempt* attempt) {
  (void)attempt;
  return outcome(syscall(kPidfdGetfd, -1L, 0L, 0L));
}

static int pidfd_signal(const struct attempt* attempt) {
  (void)attempt;
  return outcome(syscall(SYS_pidfd_send_signal, -1L, 0L, NULL, 0L));
}

static int compare(const struct attempt* attempt) {
  return outcome(syscall(SYS_kcmp, (long)getpid(), (long)other(attempt), 1L, 0L, 0L));
}

// kill:PID: signal 0, which only asks.
static int send_signal(const struct attempt* attempt) {
  return outcome(kill(other(attempt), 0));
}

static int queue_signal(const struct attempt* attempt) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_code = SI_QUEUE;
  return outcome(syscall(SYS_rt_sigqueueinfo, (long)other(attempt), 0L, &info));
}

static int open_of_process(const struct attempt* attempt, const char* what, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)other(attempt), what);
  return open(path, flags | O_CLOEXEC | O_NONBLOCK);
}

static int memory_file(const struct attempt* attempt) {
  char byte;
  const int file = open_of_process(attempt, "mem", O_RDWR);
  return file < 0 ? errno : outcome(pread(file, &byte, 1, (off_t)(size_t)typed));
}

static int environment_of(const struct attempt* attempt) {
  char byte;
  const int file = open_of_process(attempt, "environ", O_RDONLY);
  if (file < 0) return errno;
  const ssize_t size = read(file, &byte, 1);
  return size < 0 ? errno : size == 0 ? kEmpty : 0;
}

static int root_of(const struct attempt* attempt) {
  return outcome(open_of_process(attempt, "root", O_RDONLY | O_DIRECTORY));
}

// (A kernel that has one table only takes 20 for writev, of descriptor -1.)
// getpid, the way a 32-bit program calls: its numbers are others, so a filter for one ABI does not see the other's.
static int old_abi(const struct attempt* attempt) {
  (void)attempt;
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L), "D"(-1L) : "memory", "r8", "r9", "r10", "r11");
  errno = (int)-result;
  return result < 0 ? errno : 0;
}

// Not what an attempt before this one has left, which is dead and waits for its parent.
static int is_dead(const char* pid) {
  char path[64], state = 'Z';
  snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  FILE* const file = fopen(path, "re");
  if (!file) return 1;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'Z';
  fclose(file);
  return state == 'Z' || state == 'X';
}

static int visible_processes(const struct attempt* attempt) {
  (void)attempt;
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);  // for what has been killed and is not dead yet
  DIR* const processes = opendir("/proc");
  if (!processes) return errno;
  int seen = 0;
  for (const struct dirent* entry; (entry = readdir(processes));) {
    const long pid = strtol(entry->d_name, NULL, 10);
    if (pid <= 0 || pid == getpid() || pid == getppid() || is_dead(entry->d_name)) continue;
    if (seen++ == 0) tell("first", "%ld", pid);
  }
  closedir(processes);
  if (seen) tell("seen", "%d", seen);
  return seen ? 0 : kEmpty;
}

static int write_and_execute(const struct attempt* attempt) {
  (void)attempt;
  void* const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? errno : 0;
}

const struct verb kProcessVerbs[] = {
    {"ptrace-seize", seize},
    {"ptrace-child", attach},
    {"vm-read", read_memory},
    {"vm-write", write_memory},
    {"pidfd-open", pidfd},
    {"pidfd-getfd", pidfd_getfd},
    {"pidfd-signal", pidfd_signal},
    {"kcmp", compare},
    {"kill", send_signal},
    {"sigqueue", queue_signal},
    {"process-memory", memory_file},
    {"process-environ", environment_of},
    {"process-root", root_of},
    {"int80", old_abi},
    {"other-processes", visible_processes},
    {"map-write-execute", write_and_execute},
    {0},
};
