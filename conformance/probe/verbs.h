// The probe: what a hostile program would attempt, one verb each. Arguments of system calls are chosen so that behind the
// permission gate nothing happens (a bad magic, a bad descriptor, a name that is not there): the errno then names the gate, and the
// control can do the same without harm.
#pragma once

#include <stddef.h>

// What an attempt comes to: 0 (it worked), an errno, or one of these.
enum {
  kEmpty = -1,        // it worked, and nothing was there: a masked file, no descriptor, no place that takes a write
  kUnsupported = -2,  // no such verb, or not with these arguments
  kMissing = -3,      // there is no such program in the root file system
  kExited = 100000,   // ... and the exit status of a program: `exit-7`
};

enum { kMostArguments = 8 };

struct attempt {
  int count;
  char* arguments[kMostArguments + 1];
};

struct verb {
  const char* name;
  int (*attempt)(const struct attempt* attempt);
};

// A verb that is one system call with constant arguments.
struct plain_call {
  const char* name;
  long number;
  long arguments[6];
};

// Each ends with a nameless entry.
extern const struct plain_call kKernelCalls[], kPrivilegeCalls[], kMountCalls[], kProcessCalls[];
extern const struct verb kFileVerbs[], kPlaceVerbs[], kMountVerbs[], kNamespaceVerbs[], kPrivilegeVerbs[],
    kProcessVerbs[], kKernelVerbs[], kNetworkVerbs[], kIpcVerbs[], kLeakVerbs[], kFactVerbs[], kLimitVerbs[],
    kMemoryVerbs[], kOutputVerbs[], kLifetimeVerbs[], kRareVerbs[];

// A word of the detail, with every byte escaped that is not plain text.
__attribute__((format(printf, 2, 3))) void tell(const char* key, const char* format, ...);
void tell_bytes(const char* key, const char* bytes, size_t count);
// Instead of words: what a program said, blanks kept and line ends as blanks.
void tell_line(const char* bytes, size_t count);

// The result of a call as an outcome.
int outcome(long result);
// An argument, or what stands for it where it is not given.
const char* text_argument(const struct attempt* attempt, int index, const char* otherwise);
long number_argument(const struct attempt* attempt, int index, long otherwise);
const char* errno_name(int number);

// Through which the outcome goes back; not a descriptor that was inherited.
extern int report_descriptor;

// How a child ended, as an outcome: exit status 0 is `ok`, another one is an errno.
int outcome_of_child(int pid);
// "NAME COMMAND LINE", by the shell that is there.
int run_program(char* name);
double seconds_now(void);
