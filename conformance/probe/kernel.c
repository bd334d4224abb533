// Interfaces of the kernel that need trust.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "verbs.h"

#define ABSENT "/benchsand-absent"

// Numbers that the headers of the oldest supported system do not have.
enum {
  kCachestat = 451,
  kFchmodat2 = 452,
  kMapShadowStack = 453,
  kFutexWake = 454,
  kStatmount = 457,
  kListmount = 458,
  kLsmGetSelfAttr = 459,
  kLsmListModules = 461,
  kMseal = 462,
  kBadDescriptor = -1
};

static const struct timespec kBadTime = {.tv_sec = 0, .tv_nsec = -1};
static struct timex timex_read;
static struct { uint64_t size, spare[7]; } place;
static const long kBadHeader[2] = {0, 0};
static char buffer[4096];

#define P(x) ((long)(x))

const struct plain_call kKernelCalls[] = {
    {"kexec-load", SYS_kexec_load, {0, 0, 0, 0xffff0003}},
    {"kexec-file-load", SYS_kexec_file_load, {-1, -1, 0, 0, 0xffff}},
    {"init-module", SYS_init_module, {0, 0, P("")}},
    {"finit-module", SYS_finit_module, {-1, P(""), 0}},
    {"delete-module", SYS_delete_module, {P("benchsand_absent"), O_NONBLOCK}},
    {"reboot", SYS_reboot, {0, 0, 0, 0}},
    {"syslog-read", SYS_syslog, {3, 0, -1}},
    {"syslog-size", SYS_syslog, {10, 0, 0}},
    {"acct", SYS_acct, {P(ABSENT)}},
    {"iopl", SYS_iopl, {3}},
    {"ioperm", SYS_ioperm, {0x80, 1, 1}},
    {"modify-ldt", SYS_modify_ldt, {0, P(buffer), 16}},
    {"personality-query", SYS_personality, {0xffffffff}},
    {"personality-no-randomize", SYS_personality, {0x0040000}},
    {"personality-read-implies-exec", SYS_personality, {0x0400000}},
    {"quotactl", SYS_quotactl, {0x80000700, P(ABSENT), 0, P(buffer)}},
    {"quotactl-fd", 443, {-1, 0x80000700, 0, P(buffer)}},
    {"lookup-dcookie", SYS_lookup_dcookie, {0, P(buffer), 64}},
    {"fanotify-init", SYS_fanotify_init, {0, 0}},
    {"memfd-secret", 447, {0}},
    {"seccomp-query", SYS_seccomp, {2, 0, P(&kBadHeader)}},
    {"landlock", 444, {0, 0, 1}},
    {"execveat-bad", SYS_execveat, {-1, P(""), 0, 0, AT_EMPTY_PATH}},
    {"mbind", SYS_mbind, {0, 0, 0, 0, 0, 0}},
    {"set-mempolicy", SYS_set_mempolicy, {0, 0, 0}},
    {"vmsplice", SYS_vmsplice, {-1, P(buffer), 0, 0}},
    {"splice", SYS_splice, {-1, 0, -1, 0, 1, 0}},
    {"tee", SYS_tee, {-1, -1, 1, 0}},
    {"sendfile", SYS_sendfile, {-1, -1, 0, 1}},
    {"copy-file-range", SYS_copy_file_range, {-1, 0, -1, 0, 1, 0}},
    {"cachestat", kCachestat, {-1, P(buffer), P(buffer + 64), 0}},
    {"fchmodat2", kFchmodat2, {-1, P(ABSENT), 0, 0}},
    {"map-shadow-stack", kMapShadowStack, {1, 0, 0xff}},
    {"futex-wake", kFutexWake, {P(buffer), 0, 0, 0xffff}},
    {"lsm-list-modules", kLsmListModules, {P(buffer), P(&place), 0xff}},
    {"lsm-get-self-attr", kLsmGetSelfAttr, {0, 0, 0, 0}},
    {"mseal", kMseal, {1, 0, 0}},
    {"unknown-470", 470, {-1, -1, -1, -1, -1, -1}},
    {"unknown-999", 999, {-1, -1, -1, -1, -1, -1}},
    {"keyctl-session", SYS_keyctl, {0, -3, 0}},
    {"keyctl-join", SYS_keyctl, {1, 0}},
    {"keyctl-read", SYS_keyctl, {11, -3, P(buffer), 4096}},
    {"request-key", SYS_request_key, {P("user"), P("benchsand-absent"), 0, 0}},
    {"userfaultfd", SYS_userfaultfd, {0}},
    {"userfaultfd-user-mode", SYS_userfaultfd, {1}},
    {"io-uring-enter", SYS_io_uring_enter, {-1, 0, 0, 0, 0, 0}},
    {"io-uring-register", SYS_io_uring_register, {-1, 0, 0, 0}},
    {"settimeofday", SYS_settimeofday, {0, 0}},
    {"clock-settime", SYS_clock_settime, {CLOCK_REALTIME, P(&kBadTime)}},
    {"adjtimex", SYS_adjtimex, {P(&timex_read)}},
    {"clock-adjtime", SYS_clock_adjtime, {CLOCK_REALTIME, P(&timex_read)}},
    {"ustat", SYS_ustat, {0, P(buffer)}},
    {"sysfs", SYS_sysfs, {3}},
    {"swapon", SYS_swapon, {P(ABSENT), 0}},
    {"swapoff", SYS_swapoff, {P(ABSENT)}},
    {"io-setup", SYS_io_setup, {0, P(buffer)}},
    {"inotify", SYS_inotify_init1, {0}},
    {"timerfd", SYS_timerfd_create, {CLOCK_MONOTONIC, 0}},
    {"signalfd", SYS_signalfd4, {-1, P(buffer), 8, 0}},
    {"eventfd", SYS_eventfd2, {0, 0}},
    {"epoll", SYS_epoll_create1, {0}},
    {"remap-file-pages", SYS_remap_file_pages, {1, 0, 0, 0, 0}},
    {"getcpu", SYS_getcpu, {0, 0, 0}},
    {"rseq-bad", 334, {1, 0, 0, 0}},
    {"membarrier-query", SYS_membarrier, {0, 0, 0}},
    {"pkey-alloc", SYS_pkey_alloc, {0, 0xff}},
    {0},
};

static int bpf_call(int command, union bpf_attr* attributes) {
  return outcome(syscall(SYS_bpf, command, attributes, sizeof *attributes));
}

static int bpf_map(const struct attempt* attempt) {
  (void)attempt;
  union bpf_attr map;
  memset(&map, 0, sizeof map);
  map.map_type = BPF_MAP_TYPE_ARRAY;
  map.key_size = map.value_size = 4;
  map.max_entries = 1;
  return bpf_call(BPF_MAP_CREATE, &map);
}

// `r0 = 0; exit` as a socket filter, which touches nothing.
static int bpf_program(const struct attempt* attempt) {
  (void)attempt;
  const struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
  union bpf_attr program;
  memset(&program, 0, sizeof program);
  program.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  program.insns = (uint64_t)(uintptr_t)code;
  program.insn_cnt = 2;
  program.license = (uint64_t)(uintptr_t) "GPL";
  return bpf_call(BPF_PROG_LOAD, &program);
}

static int perf_event(const struct attempt* attempt) {
  struct perf_event_attr event;
  memset(&event, 0, sizeof event);
  event.type = PERF_TYPE_SOFTWARE;
  event.size = sizeof event;
  event.config = PERF_COUNT_SW_CPU_CLOCK;
  event.disabled = 1;
  const int whole_host = attempt->count > 0;  // every process on one processor, not only itself
  return outcome(syscall(SYS_perf_event_open, &event, whole_host ? -1 : 0, whole_host ? 0 : -1, -1, 0));
}

static int io_uring(const struct attempt* attempt) {
  (void)attempt;
  struct io_uring_params parameters;
  memset(&parameters, 0, sizeof parameters);
  return outcome(syscall(SYS_io_uring_setup, 1, &parameters));
}

static int add_key(const struct attempt* attempt) {
  (void)attempt;
  return outcome(syscall(SYS_add_key, "user", "benchsand-probe", "x", 1L, -2L));  // the process's own keyring
}

static int set_host_name(const struct attempt* attempt) {
  (void)attempt;
  struct utsname names;
  uname(&names);
  return outcome(syscall(SYS_sethostname, names.nodename, strlen(names.nodename)));  // as it is called already
}

static int set_domain_name(const struct attempt* attempt) {
  (void)attempt;
  struct utsname names;
  uname(&names);
  return outcome(syscall(SYS_setdomainname, names.domainname, strlen(names.domainname)));
}

static int list_mounts(const struct attempt* attempt) {
  (void)attempt;
  struct {
    uint32_t size, spare;
    uint64_t mount, parameter;
  } request = {.size = 24, .mount = ~0UL};  // LSMT_ROOT
  uint64_t ids[64];
  return outcome(syscall(kListmount, &request, ids, 64L, 0L));
}

static int stat_mount(const struct attempt* attempt) {
  (void)attempt;
  return outcome(syscall(kStatmount, NULL, buffer, sizeof buffer, 0L));
}

static int in_memory_program(const struct attempt* attempt) {
  (void)attempt;
  return outcome(syscall(SYS_memfd_create, "benchsand", 1L));
}

const struct verb kKernelVerbs[] = {
    {"bpf-map", bpf_map},
    {"bpf-program", bpf_program},
    {"perf-event", perf_event},
    {"io-uring-setup", io_uring},
    {"add-key", add_key},
    {"sethostname", set_host_name},
    {"setdomainname", set_domain_name},
    {"listmount", list_mounts},
    {"statmount", stat_mount},
    {"memfd-create", in_memory_program},
    {0},
};
