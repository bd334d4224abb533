// What the kernel tells of a network namespace, as bytes; that it is told in time, tests/runs/intruders.py tries.
#include "shim/network_watch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "support.h"

using namespace benchsand;

namespace {

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string attribute_text(unsigned short type, const std::string& value) {
  const rtattr head = {static_cast<unsigned short>(sizeof(rtattr) + value.size()), type};
  std::string text = bytes_of(head) + value;
  text.resize((text.size() + 3) & ~std::size_t{3});
  return text;
}

std::string message(unsigned short type, const std::string& body) {
  nlmsghdr head{};
  head.nlmsg_len = static_cast<std::uint32_t>(sizeof head + body.size());
  head.nlmsg_type = type;
  return bytes_of(head) + body;
}

std::string link_text(const std::string& name) {
  return message(RTM_NEWLINK, bytes_of(ifinfomsg{}) + attribute_text(IFLA_IFNAME, name + '\0'));
}

std::string seen(const std::string& text) {
  const auto found = appeared_in(text);
  return found ? *found : "error: " + found.error().message;
}

std::string observed(NetworkWatch& watch) {
  Evidence evidence;
  watch.observe(evidence);
  const auto* value = evidence.find("network.watch")->value();
  return value ? to_text(*value) : "missing";
}

}  // namespace

TEST_CASE("links, addresses and routes that lead somewhere have appeared") {
  CHECK(seen("") == "");
  CHECK(seen(link_text("lo")) == "");
  CHECK(seen(link_text("sit0")) == "");
  CHECK(seen(link_text("lo") + link_text("eth0")) == "link eth0 appeared");
  CHECK(seen(message(RTM_DELLINK, bytes_of(ifinfomsg{}) + attribute_text(IFLA_IFNAME, "eth0"))) == "");
  ifaddrmsg address{};
  address.ifa_index = 1;
  CHECK(seen(message(RTM_NEWADDR, bytes_of(address))) == "");
  address.ifa_index = 2;
  CHECK(seen(message(RTM_NEWADDR, bytes_of(address))) == "an address of link 2 appeared");
  rtmsg route{};
  route.rtm_type = RTN_UNICAST;
  const auto over = [&](int link) {
    return message(RTM_NEWROUTE, bytes_of(route) + attribute_text(RTA_OIF, bytes_of(link)));
  };
  CHECK(seen(over(1)) == "");
  CHECK(seen(over(7)) == "a route over link 7 appeared");
  CHECK(seen(message(RTM_NEWROUTE, bytes_of(route))) == "a route over several links appeared");
}

TEST_CASE("a message that is cut short anywhere is an error, and never nothing") {
  const std::string whole = link_text("eth0");
  for (std::size_t length = 1; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(seen(whole.substr(0, length)).starts_with("error: read what the kernel tells of the network: "));
  }
  std::string odd = whole;
  odd[sizeof(nlmsghdr) + sizeof(ifinfomsg)] = 1;  // an attribute shorter than its own head
  CHECK(seen(odd).starts_with("error: "));
}

TEST_CASE("a link that appears in the namespace is told, and more than can be held is missing") {
  std::string quiet, told, flooded;
  bool made = false;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) return;
    const Fd there = *sys::openat(sys::kHere, "/proc/thread-self/ns/net", O_RDONLY);
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq lo{};
    lo.ifr_name[0] = 'l', lo.ifr_name[1] = 'o';
    const auto set_lo = [&](bool up) {
      lo.ifr_flags = up ? IFF_UP : 0;
      static_cast<void>(::ioctl(socket.get(), SIOCSIFFLAGS, &lo));
    };
    auto watch = NetworkWatch::open(there);
    set_lo(true);
    quiet = observed(*watch);
    auto late = NetworkWatch::open(there);
    for (int i = 0; i < 300; ++i) set_lo(i % 2 != 0);
    flooded = observed(*late);
    auto last = NetworkWatch::open(there);
    made = ::ioctl(socket.get(), SIOCBRADDBR, "br0") == 0;  // the one link that a mere ioctl makes
    told = observed(*last);
  }).join();
  CHECK(quiet == "nothing appeared");
  CHECK(flooded == "missing");
  if (made)
    CHECK(told == "link br0 appeared");
  else
    MESSAGE("this kernel makes no bridge");
}
