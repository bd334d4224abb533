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

namespace benchsand::conformance {

namespace {

// What the cases connect and send to; the real ones of clouds among them, which here are this host's loopback.
constexpr const char* kAddresses[] = {"169.254.169.254", "169.254.170.2", "100.100.100.200",
                                      "100.96.0.96",     "192.0.2.1",     "192.0.2.53"};
constexpr const char* kAddresses6[] = {"fd00:ec2::254", "2001:db8::1"};
constexpr std::uint16_t kTcpPorts[] = {80, 443}, kUdpPorts[] = {53};
constexpr int kFirst = 9;     // the helper has 0, 1 and 2, and nothing above
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

int add_address(int control, const char* address, int number) {
  ifreq request{};
  std::memcpy(request.ifr_name, "lo:?", 5);
  request.ifr_name[3] = static_cast<char>('a' + number);  // an alias each
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (::inet_pton(AF_INET, address, &place.sin_addr) != 1) return EINVAL;
  std::memcpy(&request.ifr_addr, &place, sizeof place);
  return failed(::ioctl(control, SIOCSIFADDR, &request));
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

int serve_at(int family, int type, std::uint16_t port, int number) {
  const int served = ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (served < 0) return errno;
  sockaddr_storage place{};
  place.ss_family = static_cast<sa_family_t>(family);
  // The port is at the same place in both.
  reinterpret_cast<sockaddr_in*>(&place)->sin_port = htons(port);
  const int on = 1;
  if (family == AF_INET6 && ::setsockopt(served, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) return errno;
  const socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::bind(served, reinterpret_cast<sockaddr*>(&place), size) < 0) return errno;
  if (type == SOCK_STREAM && ::listen(served, 128) < 0) return errno;
  return failed(::dup2(served, number));
}

int serve_family(int family, int& number) {
  for (const std::uint16_t port : kTcpPorts)
    if (const int error = serve_at(family, SOCK_STREAM, port, number++); error != 0) return error;
  for (const std::uint16_t port : kUdpPorts)
    if (const int error = serve_at(family, SOCK_DGRAM, port, number++); error != 0) return error;
  return 0;
}

// An engine turns IPv6 off where it gives no network; what is not there cannot be turned on.
void allow_addresses6() {
  const int setting = ::open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", O_WRONLY | O_CLOEXEC);
  if (setting < 0) return;
  if (::write(setting, "0", 1) < 0) errno = 0;  // seen by who adds an address
  ::close(setting);
}

int fill_namespace() {
  const int control = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) return errno;
  if (const int error = lift_loopback(control); error != 0) return error;
  int alias = 0, number = kFirst;
  for (const char* address : kAddresses)
    if (const int error = add_address(control, address, alias++); error != 0) return error;
  ::close(control);
  allow_addresses6();
  if (const int error = add_addresses6(); error != 0) return error;
  if (const int error = serve_family(AF_INET, number); error != 0) return error;
  const int error = serve_family(AF_INET6, number);
  return error == EAFNOSUPPORT ? 0 : error;
}

int make_namespace(int) {
  return ::unshare(CLONE_NEWNET) != 0 ? errno : fill_namespace();
}

int enter_namespace(int there) {
  return ::setns(there, CLONE_NEWNET) != 0 ? errno : fill_namespace();
}

}  // namespace

Result<Sink> Sink::make() {
  return of(TRY(HelperProcess::start("make a network namespace of the suite's own:", "unshare, addresses and sockets",
                                     make_namespace)));
}

Result<Sink> Sink::make_in(const Fd& network_namespace) {
  return of(TRY(HelperProcess::start("fill the network namespace of a container:", "setns, addresses and sockets",
                                     enter_namespace, network_namespace.get())));
}

Result<Sink> Sink::of(const HelperProcess& helper) {
  Sink sink;
  sink.namespace_ = TRY(sys::openat(sys::kHere, "/proc/" + std::to_string(helper.pid()) + "/ns/net", O_RDONLY));
  const Fd pidfd = TRY(sys::pidfd_open(helper.pid()));
  const bool v6 = TRY(sys::exists(sys::kHere, "/proc/net/if_inet6"));
  int number = kFirst;
  for (int family = 0; family < (v6 ? 2 : 1); ++family) {
    for ([[maybe_unused]] const std::uint16_t port : kTcpPorts)
      sink.listeners_.push_back(TRY(sys::pidfd_getfd(pidfd, number++)));
    for ([[maybe_unused]] const std::uint16_t port : kUdpPorts)
      sink.receivers_.push_back(TRY(sys::pidfd_getfd(pidfd, number++)));
  }
  return sink;
}

Result<Reached> Sink::reached() {
  Reached reached;
  for (const Fd& listener : listeners_)
    for (;;) {
      const Fd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection && errno == EAGAIN) break;
      if (!connection && errno != ECONNABORTED) return sys_error("accept", "in the suite's network namespace", errno);
      ++reached.connections;
    }
  for (const Fd& receiver : receivers_) {
    char byte = 0;
    while (::recv(receiver.get(), &byte, 1, 0) >= 0) ++reached.datagrams;
    if (errno != EAGAIN) return sys_error("recv", "in the suite's network namespace", errno);
  }
  return reached;
}

}  // namespace benchsand::conformance
