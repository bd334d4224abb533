#include "shim/network_watch.h"

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "shim/host_network.h"

namespace benchsand {

namespace {

constexpr int kMessagesATurn = 64;
constexpr std::uint32_t kLoopback = 1;  // the number of lo in every namespace

std::unexpected<Error> not_understood(const std::string& what) {
  return fault("read what the kernel tells of the network: " + what);
}

template <class T>
Result<T> head_of(std::string_view bytes, const char* name) {
  T head{};
  if (bytes.size() < sizeof head) return not_understood(std::string("a message is too short for ") + name);
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

// The bytes of one attribute, empty when it is not there.
Result<std::string_view> attribute(std::string_view list, unsigned short type) {
  while (list.size() >= sizeof(rtattr)) {
    const rtattr head = TRY(head_of<rtattr>(list, "an attribute"));
    if (head.rta_len < sizeof head || head.rta_len > list.size())
      return not_understood("an attribute is longer than its message");
    if ((head.rta_type & NLA_TYPE_MASK) == type) return list.substr(sizeof head, head.rta_len - sizeof head);
    list.remove_prefix(std::min<std::size_t>(list.size(), (head.rta_len + 3U) & ~3U));
  }
  return std::string_view();
}

Result<std::string> link_in(std::string_view body) {
  const auto link = TRY(head_of<ifinfomsg>(body, "a link"));
  const std::string_view bytes = TRY(attribute(body.substr(sizeof link), IFLA_IFNAME));
  const std::string name(bytes.substr(0, bytes.find('\0')));
  if (name == "lo" || is_fallback_link(name)) return std::string();
  return "link " + (name.empty() ? std::to_string(link.ifi_index) : name) + " appeared";
}

Result<std::string> address_in(std::string_view body) {
  const auto address = TRY(head_of<ifaddrmsg>(body, "an address"));
  return address.ifa_index == kLoopback ? "" : "an address of link " + std::to_string(address.ifa_index) + " appeared";
}

// One that leads to lo alone leads nowhere; one of several hops has no link of its own.
Result<std::string> route_in(std::string_view body) {
  const auto route = TRY(head_of<rtmsg>(body, "a route"));
  const std::string_view link = TRY(attribute(body.substr(sizeof route), RTA_OIF));
  if (link.empty()) return route.rtm_type == RTN_UNICAST ? "a route over several links appeared" : "";
  const auto number = TRY(head_of<std::uint32_t>(link, "the link of a route"));
  return number == kLoopback ? "" : "a route over link " + std::to_string(number) + " appeared";
}

}  // namespace

Result<std::string> appeared_in(std::string_view message) {
  while (!message.empty()) {
    const auto head = TRY(head_of<nlmsghdr>(message, "its head"));
    if (head.nlmsg_len < sizeof head || head.nlmsg_len > message.size())
      return not_understood("a message is longer than what came");
    const std::string_view body = message.substr(sizeof head, head.nlmsg_len - sizeof head);
    std::string found;
    if (head.nlmsg_type == RTM_NEWLINK) found = TRY(link_in(body));
    if (head.nlmsg_type == RTM_NEWADDR) found = TRY(address_in(body));
    if (head.nlmsg_type == RTM_NEWROUTE) found = TRY(route_in(body));
    if (!found.empty()) return found;
    message.remove_prefix(std::min<std::size_t>(message.size(), (head.nlmsg_len + 3U) & ~3U));
  }
  return std::string();
}

Result<NetworkWatch> NetworkWatch::open(const Fd& network_namespace) {
  Result<Fd> made = fault("open a netlink socket: not reached");
  // A thread of its own: that of the caller must never be in another namespace, not even when something fails.
  std::thread([&] {
    if (::setns(network_namespace.get(), CLONE_NEWNET) != 0)
      made = sys_error("setns", "network", errno);
    else if (Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)); fd)
      made = std::move(fd);
    else
      made = sys_error("socket", "NETLINK_ROUTE", errno);
  }).join();
  Fd socket = TRY(std::move(made));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return sys_error("bind", "NETLINK_ROUTE", errno);
  return NetworkWatch(std::move(socket));
}

// False: there is nothing more.
bool NetworkWatch::take_one() {
  std::array<char, 32768> bytes;
  sockaddr_nl from{};
  socklen_t length = sizeof from;
  const ssize_t n =
      ::recvfrom(socket_.get(), bytes.data(), bytes.size(), MSG_TRUNC, reinterpret_cast<sockaddr*>(&from), &length);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0) {
    // ENOBUFS: more was told than the socket could hold, and nobody knows what.
    if (errno != EAGAIN) unread_ = sys_error("recv", "NETLINK_ROUTE", errno).error().message;
    return false;
  }
  if (from.nl_pid != 0) return true;  // not from the kernel
  const auto size = static_cast<std::size_t>(n);
  const auto found = size <= bytes.size() ? appeared_in({bytes.data(), size}) : not_understood("a message is too long");
  if (!found)
    unread_ = found.error().message;
  else if (appeared_.empty())
    appeared_ = *found;
  return true;
}

Result<std::optional<Cause>> NetworkWatch::serve() {
  for (int i = 0; i < kMessagesATurn && take_one(); ++i) {
  }
  if (appeared_.empty() && unread_.empty()) return std::nullopt;
  return std::optional(Cause::killed);
}

void NetworkWatch::observe(Evidence& evidence) {
  static_cast<void>(serve());  // the end of a run may have been seen first
  const char* source = "netlink in the run's network namespace";
  if (appeared_.empty() && !unread_.empty()) return evidence.missing("network.watch", unread_, source);
  evidence.set("network.watch", appeared_.empty() ? "nothing appeared" : appeared_, source);
}

}  // namespace benchsand
