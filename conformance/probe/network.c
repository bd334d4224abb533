// Sockets of every family, and addresses to reach.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs.h"

// No socket is of type 15: the kernel says so before it looks for the family, and loads no module for it.
enum { kNetlinkAudit = 9, kNetlinkRoute = 0, kWaitMs = 1000, kNoType = 15 };

struct kind {
  const char* name;
  int family, type, protocol;
};
static const struct kind kKinds[] = {
    {"tcp", AF_INET, SOCK_STREAM, 0},
    {"udp", AF_INET, SOCK_DGRAM, 0},
    {"tcp6", AF_INET6, SOCK_STREAM, 0},
    {"udp6", AF_INET6, SOCK_DGRAM, 0},
    {"icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP},
    {"raw", AF_INET, SOCK_RAW, IPPROTO_RAW},
    {"raw6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
    {"ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP},
    {"sctp", AF_INET, kNoType, 132},
    {"mptcp", AF_INET, SOCK_STREAM, 262},
    {"udplite", AF_INET, SOCK_DGRAM, 136},
    {"packet", AF_PACKET, SOCK_RAW, 0},
    {"packet-dgram", AF_PACKET, SOCK_DGRAM, 0},
    {"netlink", AF_NETLINK, SOCK_RAW, kNetlinkRoute},
    {"netlink-audit", AF_NETLINK, SOCK_RAW, kNetlinkAudit},
    {"netlink-netfilter", AF_NETLINK, kNoType, 12},
    {"netlink-xfrm", AF_NETLINK, kNoType, 6},
    {"netlink-uevent", AF_NETLINK, SOCK_RAW, 15},
    {"netlink-generic", AF_NETLINK, SOCK_RAW, 16},
    {"vsock", AF_VSOCK, kNoType, 0},
    {"alg", 38, kNoType, 0},
    {"xdp", 44, SOCK_RAW, 0},
    {"bluetooth", 31, kNoType, 1},
    {"can", 29, kNoType, 1},
    {"tipc", 30, kNoType, 0},
    {"rds", 21, kNoType, 0},
    {"smc", 43, kNoType, 0},
    {"kcm", 41, kNoType, 0},
    {"nfc", 39, kNoType, 0},
    {"qipcrtr", 42, kNoType, 0},
    {"key", 15, kNoType, 2},
    {"ieee802154", 36, kNoType, 0},
    {"phonet", 35, kNoType, 0},
    {"ax25", 3, kNoType, 0},
    {"unix", AF_UNIX, SOCK_STREAM, 0},
};

static int make_socket(const struct attempt* attempt) {
  const char* const name = text_argument(attempt, 0, "tcp");
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i)
    if (strcmp(kKinds[i].name, name) == 0)
      return outcome(socket(kKinds[i].family, kKinds[i].type | SOCK_CLOEXEC, kKinds[i].protocol));
  return kUnsupported;
}

static int make_pair(const struct attempt* attempt) {
  int ends[2];
  const int family = strcmp(text_argument(attempt, 0, "unix"), "unix") == 0 ? AF_UNIX : AF_INET;
  return outcome(socketpair(family, SOCK_STREAM, 0, ends));
}

union address {
  struct sockaddr any;
  struct sockaddr_in four;
  struct sockaddr_in6 six;
  struct sockaddr_un local;
  struct sockaddr_vm machine;
};

// VERB:ADDRESS:PORT
static int read_address(const struct attempt* attempt, union address* address, socklen_t* size) {
  const char* const text = text_argument(attempt, 0, "127.0.0.1");
  const in_port_t port = htons((in_port_t)number_argument(attempt, 1, 80));
  memset(address, 0, sizeof *address);
  if (inet_pton(AF_INET, text, &address->four.sin_addr) == 1) {
    address->four.sin_family = AF_INET;
    address->four.sin_port = port;
    *size = sizeof address->four;
    return 0;
  }
  if (inet_pton(AF_INET6, text, &address->six.sin6_addr) != 1) return kUnsupported;
  address->six.sin6_family = AF_INET6;
  address->six.sin6_port = port;
  *size = sizeof address->six;
  return 0;
}

// Not longer than a second: a wall that swallows packets says nothing, which is a timeout of the network's own.
static int finished(int file) {
  struct pollfd one = {.fd = file, .events = POLLOUT};
  int error = 0;
  socklen_t size = sizeof error;
  if (poll(&one, 1, kWaitMs) == 0) return ETIMEDOUT;
  if (getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size)) return errno;
  return error;
}

static int connect_to(const union address* address, socklen_t size, int type) {
  const int file = socket(address->any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) {
    tell("at", "socket");
    return errno;
  }
  tell("at", "connect");
  if (connect(file, &address->any, size) == 0) return 0;
  return errno == EINPROGRESS ? finished(file) : errno;
}

static int connect_out(const struct attempt* attempt) {
  union address address;
  socklen_t size;
  if (read_address(attempt, &address, &size)) return kUnsupported;
  return connect_to(&address, size, SOCK_STREAM);
}

// The question for `benchsand.invalid`, which no server has an answer to.
static const unsigned char kQuestion[] =
    "\x62\x73\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x09"
    "benchsand\x07invalid\x00\x00\x01\x00\x01";

static int send_out(const struct attempt* attempt) {
  union address address;
  socklen_t size;
  if (read_address(attempt, &address, &size)) return kUnsupported;
  const int file = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) {
    tell("at", "socket");
    return errno;
  }
  tell("at", "sendto");
  return outcome(sendto(file, kQuestion, sizeof kQuestion - 1, MSG_DONTWAIT, &address.any, size));
}

static int listen_at(const struct attempt* attempt) {
  union address address;
  socklen_t size;
  if (read_address(attempt, &address, &size)) return kUnsupported;
  const int file = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return errno;
  if (bind(file, &address.any, size)) return errno;
  return outcome(listen(file, 1));
}

static socklen_t local_address(union address* address, const char* name, int abstract) {
  memset(address, 0, sizeof *address);
  address->local.sun_family = AF_UNIX;
  snprintf(address->local.sun_path + (abstract ? 1 : 0), sizeof address->local.sun_path - 1, "%s", name);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
}

// An abstract name belongs to the network namespace, not to the file system.
static int connect_abstract(const struct attempt* attempt) {
  union address address;
  const socklen_t size = local_address(&address, text_argument(attempt, 0, "benchsand-absent"), 1);
  return connect_to(&address, size, SOCK_STREAM);
}

static int connect_named(const struct attempt* attempt) {
  union address address;
  const socklen_t size = local_address(&address, text_argument(attempt, 0, "/benchsand-absent"), 0);
  return connect_to(&address, size, SOCK_STREAM);
}

static int bind_named(const struct attempt* attempt) {
  union address address;
  const char* const name = text_argument(attempt, 0, "/output/socket");
  const socklen_t size = local_address(&address, name, 0);
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return errno;
  return outcome(bind(file, &address.any, size));
}

// connect-vsock:CID:PORT; 1 is this machine itself, 2 would be the one that it is a guest of.
static int connect_machine(const struct attempt* attempt) {
  union address address;
  memset(&address, 0, sizeof address);
  address.machine.svm_family = AF_VSOCK;
  address.machine.svm_cid = (unsigned)number_argument(attempt, 0, VMADDR_CID_LOCAL);
  address.machine.svm_port = (unsigned)number_argument(attempt, 1, 1);
  return connect_to(&address, sizeof address.machine, SOCK_STREAM);
}

// Of a socket that is allowed, what is done with it is not.
static int with_pair(int (*use)(int)) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return errno;
  return use(ends[0]);
}

static int options(int file) {
  const int value = 1;
  return outcome(setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &value, sizeof value));
}

static int names(int file) {
  struct ifreq request = {.ifr_ifindex = 1};
  return outcome(ioctl(file, SIOCGIFNAME, &request));
}

static int socket_options(const struct attempt* attempt) {
  (void)attempt;
  return with_pair(options);
}

static int interface_names(const struct attempt* attempt) {
  (void)attempt;
  return with_pair(names);
}

// Links other than the loopback, or a route, in the namespace's own tables.
static int interfaces(const struct attempt* attempt) {
  (void)attempt;
  char line[512], name[64];
  int seen = 0;
  FILE* const table = fopen("/proc/self/net/dev", "re");
  if (!table) return errno;
  while (fgets(line, sizeof line, table))
    if (sscanf(line, " %63[^: ]:", name) == 1 && strchr(line, ':') && strcmp(name, "lo") != 0 && seen++ < 4)
      tell("link", "%s", name);
  fclose(table);
  return seen ? 0 : kEmpty;
}

const struct verb kNetworkVerbs[] = {
    {"socket", make_socket},
    {"socketpair", make_pair},
    {"connect", connect_out},
    {"send", send_out},
    {"listen", listen_at},
    {"connect-abstract", connect_abstract},
    {"connect-named", connect_named},
    {"bind-named", bind_named},
    {"connect-vsock", connect_machine},
    {"setsockopt", socket_options},
    {"interface-name", interface_names},
    {"interfaces", interfaces},
    {0},
};
