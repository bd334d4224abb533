#include "conformance/sink.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ipv6.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "conformance/sink_answers.h"

namespace benchsand::conformance {

namespace {

// On a loopback interface every address of an address's network is local, so these are all of IPv4 but 0.0.0.0/8 and what is no host's: whatever the cases
// try, the services of clouds among it, and the resolver that some root file system names.
struct Network {
  const char* address;
  int prefix;
};
constexpr Network kNetworks[] = {{"1.0.0.1", 8},  {"2.0.0.1", 7},  {"4.0.0.1", 6},   {"8.0.0.1", 5},  {"16.0.0.1", 4},
                                 {"32.0.0.1", 3}, {"64.0.0.1", 2}, {"128.0.0.1", 2}, {"192.0.0.1", 3}};
// Of IPv6, what the cases try.
constexpr const char* kAddresses6[] = {"fd00:ec2::254", "2001:db8::1"};
constexpr int kAsks = 100;    // above all that the helper opens by itself
constexpr int kLoopback = 1;  // the index of its interface, in every network namespace

int failed(int result) {
  return result < 0 ? errno : 0;
}

// In a child between fork and exit: system calls alone, and what libc does without memory.
int lift_loopback(int control) {
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP;
  return failed(::ioctl(control, SIOCSIFFLAGS, &request));
}

int add_network(int control, const Network& network, int number) {
  ifreq request{};
  std::memcpy(request.ifr_name, "lo:?", 5);
  request.ifr_name[3] = static_cast<char>('a' + number);  // an alias each
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (::inet_pton(AF_INET, network.address, &place.sin_addr) != 1) return EINVAL;
  std::memcpy(&request.ifr_addr, &place, sizeof place);
  if (::ioctl(control, SIOCSIFADDR, &request) < 0) return errno;
  place.sin_addr.s_addr = htonl(~0U << (32 - network.prefix));
  std::memcpy(&request.ifr_netmask, &place, sizeof place);
  return failed(::ioctl(control, SIOCSIFNETMASK, &request));
}

// A kernel without IPv6 has no such sockets, and then nobody can try such an address.
int add_addresses6() {
  const int control = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) return errno == EAFNOSUPPORT ? 0 : errno;
  for (const char* address : kAddresses6) {
    in6_ifreq request{};
    request.ifr6_ifindex = kLoopback;
    request.ifr6_prefixlen = 128;
    if (::inet_pton(AF_INET6, address, &request.ifr6_addr) != 1) return EINVAL;
    if (::ioctl(control, SIOCSIFADDR, &request) < 0) return errno;
  }
  ::close(control);
  return 0;
}

int keep_asked_address(int served, int family) {
  const int on = 1;
  return family == AF_INET6 ? ::setsockopt(served, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on)
                            : ::setsockopt(served, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
}

int serve_at(int family, int type, std::uint16_t port, SinkSockets& sockets) {
  const int served = ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (served < 0) return errno;
  sockaddr_storage place{};
  place.ss_family = static_cast<sa_family_t>(family);
  // The port is at the same place in both.
  reinterpret_cast<sockaddr_in*>(&place)->sin_port = htons(port);
  const int on = 1;
  if (family == AF_INET6 && ::setsockopt(served, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) return errno;
  const socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (type == SOCK_DGRAM && keep_asked_address(served, family) < 0) return errno;
  if (::bind(served, reinterpret_cast<sockaddr*>(&place), size) < 0) return errno;
  if (type == SOCK_STREAM && ::listen(served, 128) < 0) return errno;
  sockets.add(served, type == SOCK_STREAM, port);
  return 0;
}

int serve_family(int family, SinkSockets& sockets) {
  for (const std::uint16_t port : kTcpPorts)
    if (const int error = serve_at(family, SOCK_STREAM, port, sockets); error != 0) return error;
  return serve_at(family, SOCK_DGRAM, kDnsPort, sockets);
}

// An engine turns IPv6 off where it gives no network; what is not there cannot be turned on.
void allow_addresses6() {
  const int setting = ::open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", O_WRONLY | O_CLOEXEC);
  if (setting < 0) return;
  if (::write(setting, "0", 1) < 0) errno = 0;  // seen by who adds an address
  ::close(setting);
}

// At a number that its caller knows.
int make_asked(SinkSockets& sockets) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  sockets.asked = ends[0];
  const int error = failed(::dup3(ends[1], kAsks, O_CLOEXEC));
  ::close(ends[1]);
  return error;
}

int fill_namespace(SinkSockets& sockets) {
  if (const int error = make_asked(sockets); error != 0) return error;
  const int control = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) return errno;
  if (const int error = lift_loopback(control); error != 0) return error;
  int alias = 0;
  for (const Network& network : kNetworks)
    if (const int error = add_network(control, network, alias++); error != 0) return error;
  ::close(control);
  allow_addresses6();
  if (const int error = add_addresses6(); error != 0) return error;
  if (const int error = serve_family(AF_INET, sockets); error != 0) return error;
  const int error = serve_family(AF_INET6, sockets);
  return error == EAFNOSUPPORT ? 0 : error;
}

int make_namespace(SinkSockets& sockets, int) {
  return ::unshare(CLONE_NEWNET) != 0 ? errno : fill_namespace(sockets);
}

int enter_namespace(SinkSockets& sockets, int there) {
  return ::setns(there, CLONE_NEWNET) != 0 ? errno : fill_namespace(sockets);
}

}  // namespace

Result<Sink> Sink::make() {
  return of("make a network namespace of the suite's own:", "unshare, addresses and sockets", make_namespace, -1);
}

Result<Sink> Sink::make_in(const Fd& network_namespace) {
  return of("fill the network namespace of a container:", "setns, addresses and sockets", enter_namespace,
            network_namespace.get());
}

Result<Sink> Sink::of(const char* call, const char* object, int (*work)(SinkSockets&, int), int descriptor) {
  SinkSockets sockets;  // of the helper: filled there
  auto helper = TRY(HelperProcess::start(
      call, object, [&](int own) { return work(sockets, own); }, descriptor,
      [&](int lifeline) { answer(sockets, lifeline); }));
  Fd network = TRY(sys::openat(sys::kHere, "/proc/" + std::to_string(helper.pid()) + "/ns/net", O_RDONLY));
  Fd asks = TRY(sys::pidfd_getfd(TRY(sys::pidfd_open(helper.pid())), kAsks));
  return Sink(std::move(helper), std::move(network), std::move(asks));
}

Result<Reached> Sink::reached() {
  Reached reached;
  const char asked = 0;
  if (::send(asks_.get(), &asked, 1, MSG_NOSIGNAL) != 1)
    return sys_error("ask", "who answers in the suite's network namespace", errno);
  ssize_t n = 0;
  do n = ::recv(asks_.get(), &reached, sizeof reached, 0);
  while (n < 0 && errno == EINTR);
  if (n != sizeof reached) return fault("ask who answers in the suite's network namespace: it is gone");
  return reached;
}

}  // namespace benchsand::conformance
