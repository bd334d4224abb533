/* One static program with the misbehaviours of a candidate as verbs; the runs (runs.py) say what must become of each. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "neighbours.h"

enum { kMebibyte = 1 << 20 };

static void touch_memory(long mebibytes) {
  for (long i = 0; i < mebibytes; ++i) {
    char* block = malloc(kMebibyte);
    if (!block) exit(3);
    memset(block, 1, kMebibyte);
  }
}

static int alloc(long mebibytes) {
  touch_memory(mebibytes);
  return 0;
}

/* Init outlives the child that the kernel kills, and pretends that all is well. */
static int alloc_in_child(long mebibytes) {
  const pid_t child = fork();
  if (child == 0) {
    touch_memory(mebibytes);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child signal=%d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return 0;
}

static int spin(long unused) {
  (void)unused;
  volatile int forever = 1;
  while (forever) {
  }
  return 0;
}

static void* spin_thread(void* unused) {
  (void)unused;
  spin(0);
  return NULL;
}

/* The thread-group leader ends and its thread goes on: a signal to the leader alone reaches nobody. */
static int spin_without_leader(long processes) {
  for (long i = 1; i < processes; ++i)
    if (fork() == 0) break;
  pthread_t thread;
  if (pthread_create(&thread, NULL, spin_thread, NULL) != 0) return 3;
  syscall(SYS_exit, 0);
  return 3;
}

static int record_locks(long unused) {
  (void)unused;
  int ends[2];
  if (pipe(ends) != 0) return 3;
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  printf("errno=%s\n", fcntl(ends[1], F_SETLK, &lock) == 0 ? "none" : strerrorname_np(errno));
  return 0;
}

/* No single process uses much: a limit per process never sees it. */
static int spin_in_children(long unused) {
  (void)unused;
  for (;;) {
    const pid_t child = fork();
    if (child == 0) {
      while (clock() < CLOCKS_PER_SEC / 20) {
      }
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
}

static int forks(long wanted_failures) {
  long started = 0, failed = 0;
  int error = 0;
  while (failed < wanted_failures) {
    const pid_t child = fork();
    if (child == 0)
      for (;;) sleep(1000);
    if (child > 0) ++started;
    if (child < 0) {
      ++failed;
      error = errno;
    }
  }
  printf("started=%ld failed=%ld errno=%s\n", started, failed, strerrorname_np(error));
  return 0;
}

static int fill(long mebibytes) {
  static char block[65536];
  const int fd = open("/output/big", O_WRONLY | O_CREAT, 0600);
  long long written = 0;
  int error = 0;
  while (!error && written < (long long)mebibytes * kMebibyte) {
    const ssize_t n = write(fd, block, sizeof block);
    if (n > 0) written += n;
    if (n < 0) error = errno;
  }
  printf("written=%lld errno=%s\n", written, error ? strerrorname_np(error) : "0");
  return 0;
}

static int files(long most) {
  long made = 0;
  int error = 0;
  while (!error && made < most) {
    char name[64];
    snprintf(name, sizeof name, "/output/file-%ld", made);
    const int fd = open(name, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) error = errno;
    if (fd >= 0) {
      ++made;
      close(fd);
    }
  }
  printf("made=%ld errno=%s\n", made, error ? strerrorname_np(error) : "0");
  return 0;
}

static int flood(long mebibytes) {
  static char block[65536];
  memset(block, 'x', sizeof block);
  for (long long left = (long long)mebibytes * kMebibyte; left > 0;) {
    const ssize_t n = write(1, block, left < (long long)sizeof block ? (size_t)left : sizeof block);
    if (n < 0) return 4;
    left -= n;
  }
  return 0;
}

static int daemonize(long unused) {
  (void)unused;
  int ready[2];
  if (pipe2(ready, 0)) return 3;
  const pid_t middle = fork();
  if (middle == 0) {
    setsid();
    if (fork() == 0) {
      for (int signal_number = 1; signal_number < 32; ++signal_number) signal(signal_number, SIG_IGN);
      if (write(ready[1], "x", 1) != 1) _exit(3);
      for (;;) sleep(1000);
    }
    _exit(0);
  }
  waitpid(middle, NULL, 0);
  char byte;
  return read(ready[0], &byte, 1) == 1 ? 0 : 3;
}

static int sockets(long unused) {
  (void)unused;
  const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK, AF_ALG};
  for (size_t i = 0; i < sizeof families / sizeof families[0]; ++i) {
    const int fd = socket(families[i], SOCK_DGRAM, 0);
    printf("%d=%s\n", families[i], fd < 0 ? strerrorname_np(errno) : "ok");
  }
  return 0;
}

/* A refused call of every class, `rounds` times each; what it says must be what the host has counted. */
static int refused_calls(long rounds) {
  const struct {
    const char* name;
    long number, first;
  } calls[] = {
      {"socket:AF_INET", SYS_socket, AF_INET},
      {"socket:AF_INET6", SYS_socket, AF_INET6},
      {"socket:AF_NETLINK", SYS_socket, AF_NETLINK},
      {"socket:AF_PACKET", SYS_socket, AF_PACKET},
      {"socket:AF_VSOCK", SYS_socket, AF_VSOCK},
      {"socket:AF_ALG", SYS_socket, AF_ALG},
      {"socketpair:AF_INET", SYS_socketpair, AF_INET},
      {"unshare:CLONE_NEWUSER", SYS_unshare, 0x10000000},
      {"unshare:CLONE_NEWNS CLONE_NEWNET", SYS_unshare, 0x40020000},
      {"clone:CLONE_NEWUSER", SYS_clone, 0x10000011},
      {"setns:", SYS_setns, -1},
      {"mount:", SYS_mount, 0},
      {"umount2:", SYS_umount2, 0},
      {"pivot_root:", SYS_pivot_root, 0},
      {"fsopen:", SYS_fsopen, 0},
      {"ptrace:", SYS_ptrace, 0},
      {"process_vm_readv:", SYS_process_vm_readv, 1},
      {"bpf:", SYS_bpf, 0},
      {"perf_event_open:", SYS_perf_event_open, 0},
      {"io_uring_setup:", SYS_io_uring_setup, 1},
      {"keyctl:", SYS_keyctl, 0},
      {"add_key:", SYS_add_key, 0},
      {"userfaultfd:", SYS_userfaultfd, 0},
      {"init_module:", SYS_init_module, 0},
      {"kexec_load:", SYS_kexec_load, 0},
      {"reboot:", SYS_reboot, 0},
      {"open_by_handle_at:", SYS_open_by_handle_at, -1},
      {"personality:", SYS_personality, 0xffffffff},
      {"seccomp:", SYS_seccomp, 0},
      {"prctl:PR_SET_SECCOMP", SYS_prctl, 22},
      {"ioctl:TIOCSTI", SYS_ioctl, 0}, /* its request is the second argument */
      {"setuid:", SYS_setuid, 0},
  };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
    const long second = calls[i].number == SYS_ioctl ? 0x5412 : 0;
    int error = 0;
    for (long round = 0; round < rounds; ++round)
      error = syscall(calls[i].number, calls[i].first, second, 0, 0, 0) < 0 ? errno : 0;
    printf("%s\t%s\t%ld\n", calls[i].name, error ? strerrorname_np(error) : "ok", rounds);
  }
  return 0;
}

static void ignore(int signal_number) {
  (void)signal_number;
}

/* Refused calls while another process sends one signal after the other: each voids the question that is being asked. */
static int refused_under_signals(long rounds) {
  const struct sigaction action = {.sa_handler = ignore};
  sigaction(SIGUSR1, &action, NULL);
  const pid_t self = getpid(), child = fork();
  if (child == 0)
    while (kill(self, SIGUSR1) == 0) {
    }
  long refused = 0, interrupted = 0, other = 0;
  for (long i = 0; i < rounds; ++i) {
    const int error = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
    if (error == EACCES)
      ++refused;
    else if (error == EINTR)
      ++interrupted;
    else
      ++other;
  }
  kill(child, SIGKILL);
  printf("refused=%ld interrupted=%ld other=%ld\n", refused, interrupted, other);
  return 0;
}

/* Refused calls from `tasks` processes at once, without end. */
static int refused_flood(long tasks) {
  for (long i = 1; i < tasks; ++i)
    if (fork() == 0) break;
  long refused = 0;
  while (syscall(SYS_socket, AF_INET, SOCK_STREAM, 0) < 0) ++refused;
  return refused > 0 ? 3 : 4;
}

/* One attempt to reach a documentation address (RFC 5737), as far as it gets. */
static const char* attempt(int type, in_addr_t host) {
  const struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(host)}};
  const int fd = socket(AF_INET, type, 0);
  if (fd < 0) return strerrorname_np(errno);
  const long done = type == SOCK_STREAM ? connect(fd, (const struct sockaddr*)&there, sizeof there)
                                        : sendto(fd, "out", 3, 0, (const struct sockaddr*)&there, sizeof there);
  const int error = errno;
  close(fd);
  return done < 0 ? strerrorname_np(error) : "sent";
}

static int reach_out(long unused) {
  (void)unused;
  for (unsigned i = 1; i <= 5; ++i) printf("tcp%u=%s\n", i, attempt(SOCK_STREAM, 0xC0000200 + i)); /* 192.0.2.i */
  for (unsigned i = 1; i <= 3; ++i) printf("udp%u=%s\n", i, attempt(SOCK_DGRAM, 0xC6336400 + i));  /* 198.51.100.i */
  return 0;
}

/* What a process may set of itself, and must not: at a core limit of 0 every crash starts a program of the host. */
static int own_limits(long unused) {
  (void)unused;
  const struct {
    const char* name;
    int resource;
  } limits[] = {{"cpu", RLIMIT_CPU}, {"core", RLIMIT_CORE}, {"stack", RLIMIT_STACK}, {"files", RLIMIT_NOFILE}};
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; ++i) {
    const struct rlimit value = {limits[i].resource == RLIMIT_CORE ? 0 : 64,
                                 limits[i].resource == RLIMIT_CORE ? 0 : 64};
    const int error = syscall(SYS_prlimit64, 0, limits[i].resource, &value, NULL) != 0 ? errno : 0;
    const int older = syscall(SYS_setrlimit, limits[i].resource, &value) != 0 ? errno : 0;
    printf("%s=%s setrlimit-%s=%s\n", limits[i].name, error ? strerrorname_np(error) : "ok", limits[i].name,
           older ? strerrorname_np(older) : "ok");
  }
  struct sock_filter accept_all = {BPF_RET | BPF_K, 0, 0, 0xffffffff};
  const struct sock_fprog program = {1, &accept_all};
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  const int error = setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0 ? errno : 0;
  printf("socket-filter=%s\n", error ? strerrorname_np(error) : "ok");
  return 0;
}

static void* exit_later(void* status) {
  usleep(100000);
  exit((int)(long)status);
}

/* The thread-group leader ends, and another thread ends the process in order. */
static int exit_of_a_thread(long status) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, exit_later, (void*)status) != 0) return 3;
  syscall(SYS_exit, 0);
  return 3;
}

/* Begins to end, over and over: a signal voids each exit_group while the host looks at every task of the run. */
static int endless_ending(long unused) {
  (void)unused;
  const struct sigaction action = {.sa_handler = ignore};
  sigaction(SIGUSR1, &action, NULL);
  const pid_t self = getpid();
  for (int i = 0; i < 150; ++i)
    if (fork() == 0)
      for (;;) sleep(1000);
  if (fork() == 0)
    while (kill(self, SIGUSR1) == 0) usleep(200);
  while (syscall(SYS_exit_group, 0) != 0) {
  }
  return 3;
}

static int descriptors(long unused) {
  (void)unused;
  for (int fd = 0; fd < 64; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
  printf("\n");
  return 0;
}

static int create_in_root(long unused) {
  (void)unused;
  const int fd = open("/created", O_WRONLY | O_CREAT, 0600);
  printf("%s\n", fd < 0 ? strerrorname_np(errno) : "created");
  return 0;
}

/* What a collector must not follow or hang on. */
static int odd_outputs(long unused) {
  (void)unused;
  const int fd = open("/output/plain", O_WRONLY | O_CREAT, 0600);
  if (fd < 0 || write(fd, "plain\n", 6) != 6) return 3;
  if (symlink("/etc/passwd", "/output/link")) printf("symlink refused\n");
  if (symlink("..", "/output/up")) printf("symlink refused\n");
  return 0;
}

static void tell_file(const char* path) {
  static char block[65536];
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  const ssize_t n = fd < 0 ? -1 : read(fd, block, sizeof block);
  printf("== %s %zd\n", path, n);
  for (ssize_t i = 0; i < n; ++i) putchar(block[i] ? block[i] : '\n');
  if (fd >= 0) close(fd);
}

static void tell_tree(const char* path, int depth) {
  DIR* directory = opendir(path);
  for (struct dirent* entry; directory && (entry = readdir(directory));) {
    char name[4096], target[4096];
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    struct stat facts;
    if (lstat(name, &facts) != 0) continue;
    if (S_ISDIR(facts.st_mode) && depth > 0) tell_tree(name, depth - 1);
    if (S_ISREG(facts.st_mode)) tell_file(name);
    if (!S_ISLNK(facts.st_mode)) continue;
    const ssize_t n = readlink(name, target, sizeof target - 1);
    printf("== %s -> %.*s\n", name, n < 0 ? 0 : (int)n, target);
  }
  if (directory) closedir(directory);
}

/* Whatever could tell the run's id, a path of the host, or of another run. */
static int tell_all(long unused) {
  (void)unused;
  struct utsname names;
  uname(&names);
  printf("== uname %s %s %s %s\n", names.nodename, names.release, names.version, names.domainname);
  for (char** variable = environ; *variable; ++variable) printf("== environment %s\n", *variable);
  const char* files[] = {"/etc/mtab",        "/etc/hostname", "/etc/hosts",
                         "/etc/resolv.conf", "/.dockerenv",   "/run/.containerenv"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; ++i) tell_file(files[i]);
  tell_tree("/proc", 5);
  tell_tree("/sys", 5);
  tell_tree("/dev", 2);
  tell_tree("/output", 2);
  return 0;
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds of a call that strict refuses (getsid), of one that it allows (getppid), of one that is counted (a
   hundredth of the rounds), and milliseconds of plain work. */
static int measure(long rounds) {
  double begin = now_ns();
  for (long i = 0; i < rounds / 100; ++i) close((int)syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0));
  printf("counted_ns=%.0f ", (now_ns() - begin) / (double)(rounds / 100));
  begin = now_ns();
  for (long i = 0; i < rounds; ++i) syscall(SYS_getsid, 0);
  printf("refused_ns=%.0f", (now_ns() - begin) / (double)rounds);
  begin = now_ns();
  for (long i = 0; i < rounds; ++i) syscall(SYS_getppid);
  printf(" allowed_ns=%.0f", (now_ns() - begin) / (double)rounds);
  begin = now_ns();
  volatile unsigned long sum = 0;
  for (unsigned long i = 0; i < 200000000; ++i) sum += i;
  printf(" work_ms=%.1f\n", (now_ns() - begin) / 1e6);
  return 0;
}

static int sleep_for(long seconds) {
  sleep((unsigned)seconds);
  return 0;
}

/* Runs until the test has done what it wants to do to it. */
static int until_told(long unused) {
  (void)unused;
  while (access("/output/told", F_OK) != 0) usleep(20000);
  return 0;
}

/* Memory, a file, refused calls and three more tasks to be seen in a timeline, held for some seconds. */
static int stages(long seconds) {
  touch_memory(40);
  fill(8);
  for (int i = 0; i < 5; ++i) socket(AF_INET, SOCK_STREAM, 0);
  for (int i = 0; i < 3; ++i)
    if (fork() == 0) break;
  return sleep_for(seconds);
}

static int exit_with(long status) {
  return (int)status;
}

/* A fault of its own: a signal sent by name would be ignored, for the candidate is the init of its PID namespace. */
static int crash(long unused) {
  (void)unused;
  volatile int* volatile nowhere = NULL;
  *nowhere = 1;
  return 0;
}

/* The same, and each time init could go on after it: nothing would fault again, or a thread takes the reason away. */
static int crash_of_a_frame(long unused) {
  (void)unused;
  asm volatile("mov $8, %%rsp; mov $15, %%eax; syscall; mov $60, %%eax; xor %%edi, %%edi; syscall" ::: "memory");
  return 0;
}

static char* const kNowhere = (char*)0x700000000;

static void* map_when_it_faults(void* unused) {
  (void)unused;
  char text[64] = "";
  const int fd = open("/proc/self/task/1/stat", O_RDONLY);
  while (!strstr(text, ") t"))
    if (pread(fd, text, sizeof text - 1, 0) < 0) return NULL;
  mmap(kNowhere, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return NULL;
}

static int crash_undone(long unused) {
  (void)unused;
  pthread_t thread;
  if (pthread_create(&thread, NULL, map_when_it_faults, NULL) != 0) return 3;
  usleep(50000);
  *(volatile char*)kNowhere = 1;
  printf("goes on\n");
  return 0;
}

static volatile long executing;

static void* execute_nothing(void* unused) {
  (void)unused;
  __sync_fetch_and_add(&executing, 1);
  execl("/nowhere", "x", (char*)NULL);
  for (;;) sleep(1);
  return NULL;
}

static int crash_beside_held_threads(long count) {
  pthread_t thread;
  for (long i = 0; i < count; ++i)
    if (pthread_create(&thread, NULL, execute_nothing, NULL) != 0) return 3;
  while (executing < count) usleep(1000);
  /* More than are held end the run, however long that takes. */
  usleep(count > 16 ? 60000000 : 300000);
  return crash(0);
}

/* Whoever comes into the container. */
static int kill_all(long seconds) {
  for (const time_t end = time(NULL) + seconds; time(NULL) < end; usleep(500)) kill(-1, SIGKILL);
  return 4;
}

static const struct {
  const char* name;
  int (*run)(long);
} kVerbs[] = {
    {"exit", exit_with},
    {"crash", crash},
    {"crash-of-a-frame", crash_of_a_frame},
    {"crash-undone", crash_undone},
    {"crash-beside-held-threads", crash_beside_held_threads},
    {"kill-all", kill_all},
    {"sleep", sleep_for},
    {"until-told", until_told},
    {"spin", spin},
    {"spin-without-leader", spin_without_leader},
    {"record-locks", record_locks},
    {"alloc", alloc},
    {"spin-in-children", spin_in_children},
    {"forks", forks},
    {"fill", fill},
    {"alloc-in-child", alloc_in_child},
    {"files", files},
    {"flood", flood},
    {"daemonize", daemonize},
    {"sockets", sockets},
    {"refused-calls", refused_calls},
    {"refused-flood", refused_flood},
    {"refused-under-signals", refused_under_signals},
    {"reach-out", reach_out},
    {"own-limits", own_limits},
    {"exit-of-a-thread", exit_of_a_thread},
    {"endless-ending", endless_ending},
    {"descriptors", descriptors},
    {"create-in-root", create_in_root},
    {"odd-outputs", odd_outputs},
    {"tell-all", tell_all},
    {"leave-marks", leave_marks},
    {"look-for-marks", look_for_marks},
    {"meet-yourself", meet_yourself},
    {"measure", measure},
    {"stages", stages},
};

int main(int argc, char** argv) {
  for (size_t i = 0; argc > 1 && i < sizeof kVerbs / sizeof kVerbs[0]; ++i)
    if (!strcmp(argv[1], kVerbs[i].name)) return kVerbs[i].run(argc > 2 ? strtol(argv[2], NULL, 10) : 0);
  fprintf(stderr, "no such verb\n");
  return 2;
}
