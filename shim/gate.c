// The program of a container that an engine's own runtime makes: it waits until the host has looked at everything, and then
// becomes the candidate, as the same process. Without a libc: of the calls that a profile allows it needs openat, read, write,
// close, execve and exit_group alone.
//
// Beside it, in a file system that benchsand made for the run:
//   stdin, stdout, stderr   a file, and two FIFOs that benchsand reads
//   command                 what to execute: the number of arguments in decimal, the arguments, the environment, each ended by NUL
//   report                  a FIFO: one byte when all is ready; then nothing, or why the command could not be executed
//   door                    a FIFO: one byte opens it; when benchsand is gone, there comes none
// Nothing of it stays open but 0, 1 and 2.
#include <fcntl.h>
#include <sys/syscall.h>

#define PLACE "/.benchsand/"

enum {
  kLargestCommand = 4 << 20,
  kMostStrings = 1 << 16,
  kLongestPath = 4096,
  kNoEntry = 2,
  kNoAccess = 13,
  kTooBig = 7
};

static char command[kLargestCommand + 1];
static char* strings[kMostStrings + 2];
static char candidate[kLongestPath];

static long call(long number, long a, long b, long c, long d) {
  long result;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

static void end(long status) {
  for (;;) call(SYS_exit_group, status, 0, 0, 0);
}

static int open_here(const char* path, int flags) {
  return (int)call(SYS_openat, AT_FDCWD, (long)path, flags, 0);
}

// The lowest number that is free is the one that was closed just before.
static void stand_at(int number, const char* path, int flags) {
  call(SYS_close, number, 0, 0, 0);
  if (open_here(path, flags) != number) end(120 + number);
}

static long read_command(void) {
  const int file = open_here(PLACE "command", O_RDONLY | O_CLOEXEC);
  long size = 0;
  if (file < 0) end(123);
  for (;;) {
    const long n = call(SYS_read, file, (long)(command + size), kLargestCommand - size, 0);
    if (n < 0) end(123);
    if (n == 0) break;
    size += n;
  }
  call(SYS_close, file, 0, 0, 0);
  if (size == 0 || size == kLargestCommand || command[size - 1] != 0) end(123);
  return size;
}

// strings: the arguments, null, the environment, null. Returns the environment.
static char** split(long size) {
  long at = 0, count = 0, arguments = 0;
  char** environment = 0;
  while (command[at] != 0) arguments = arguments * 10 + (command[at++] - '0');
  for (++at; at < size; ++at) {
    if (count == arguments && !environment) environment = strings + ++count;
    if (count >= kMostStrings) end(123);
    strings[count++] = command + at;
    while (command[at] != 0) ++at;
  }
  if (!environment) environment = strings + arguments + 1;
  return environment;
}

static int starts_path(const char* variable) {
  const char* name = "PATH=";
  while (*name != 0 && *name == *variable) ++name, ++variable;
  return *name == 0;
}

// One directory of PATH, up to `stop`, and the program in it.
static long try_in(const char* directory, const char* stop, char** environment) {
  long length = 0;
  for (; directory < stop; ++directory) {
    if (length == kLongestPath - 1) return -kNoEntry;
    candidate[length++] = *directory;
  }
  if (length == 0) return -kNoEntry;
  candidate[length++] = '/';
  for (const char* name = strings[0]; *name != 0; ++name) {
    if (length == kLongestPath - 1) return -kNoEntry;
    candidate[length++] = *name;
  }
  candidate[length] = 0;
  return call(SYS_execve, (long)candidate, (long)strings, (long)environment, 0);
}

// As a runtime finds a program: in PATH when there is no slash in its name. Returns only with why not.
static long execute(char** environment) {
  for (const char* at = strings[0]; *at != 0; ++at)
    if (*at == '/') return call(SYS_execve, (long)strings[0], (long)strings, (long)environment, 0);
  long failed = -kNoEntry;
  for (char** variable = environment; *variable; ++variable) {
    if (!starts_path(*variable)) continue;
    for (const char* at = *variable + 5;; ++at) {
      const char* stop = at;
      while (*stop != 0 && *stop != ':') ++stop;
      const long result = try_in(at, stop, environment);
      if (result != -kNoEntry) failed = result;
      if (result == -kTooBig) return result;
      if (*stop == 0) return failed;
      at = stop;
    }
  }
  return failed;
}

__attribute__((noreturn, used)) void begin(void) {
  stand_at(0, PLACE "stdin", O_RDONLY);
  stand_at(1, PLACE "stdout", O_WRONLY);
  stand_at(2, PLACE "stderr", O_WRONLY);
  char** const environment = split(read_command());
  const int report = open_here(PLACE "report", O_WRONLY | O_CLOEXEC);
  const int door = open_here(PLACE "door", O_RDONLY | O_CLOEXEC);
  char byte = 'r';
  if (report < 0 || door < 0) end(124);
  if (call(SYS_write, report, (long)&byte, 1, 0) != 1) end(124);
  if (call(SYS_read, door, (long)&byte, 1, 0) != 1) end(125);
  byte = (char)-execute(environment);
  call(SYS_write, report, (long)&byte, 1, 0);
  end(127);
  __builtin_unreachable();
}

__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  and $-16, %rsp\n  call begin\n");
