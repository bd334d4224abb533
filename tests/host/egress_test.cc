// The BPF counters of a cgroup of their own, against attempts whose number is known: made by a child in that cgroup and in a
// network namespace of its own, with lo and a veth pair that leads nowhere.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "own_cgroup.h"
#include "shim/host_egress.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

Policy policy_with(std::vector<EgressCounter> counters, bool deny) {
  Policy policy;
  policy.egress_counters = std::move(counters);
  if (!deny) take_down(policy, Relaxation::bpf_deny);
  return policy;
}

const std::vector<EgressCounter> kAll(kEgressCounters.begin(), kEgressCounters.end());

// The exit status of a child that did `attempts` in the cgroup: 0 when all went as it should.
int in_cgroup(const OwnCgroup& cgroup, const std::function<int()>& attempts) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool ready = ::unshare(CLONE_NEWNET) == 0 &&
                       ::system(
                           "ip link set lo up && ip link add out type veth peer name far && ip link set far up && "
                           "ip link set out up && ip address add 192.0.2.254/24 dev out && "
                           "ip neighbour add 192.0.2.1 lladdr 02:00:00:00:00:01 dev out") == 0;
    ::_exit(!ready ? 101 : !cgroup.join() ? 102 : attempts());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

sockaddr_in ipv4(const char* host) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(9);
  ::inet_pton(AF_INET, host, &there.sin_addr);
  return there;
}

bool send_udp(const char* host, std::size_t bytes) {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in there = ipv4(host);
  const std::string text(bytes, 'x');
  return ::sendto(fd.get(), text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&there), sizeof there) ==
         static_cast<ssize_t>(bytes);
}

bool connect_to_nobody(const char* host) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in there = ipv4(host);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0 && errno == ECONNREFUSED;
}

// The same on IPv6, with the numbers of connects and sends that are asked for.
int over_ipv6(int connects, int sends) {
  sockaddr_in6 there{};
  there.sin6_family = AF_INET6;
  there.sin6_port = htons(9);
  there.sin6_addr = in6addr_loopback;
  const auto* address = reinterpret_cast<const sockaddr*>(&there);
  for (int i = 0; i < connects; ++i) {
    const Fd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), address, sizeof there) == 0 || errno != ECONNREFUSED) return 5;
  }
  for (int i = 0; i < sends; ++i) {
    const Fd fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (::sendto(fd.get(), "x", 1, 0, address, sizeof there) != 1) return 6;
  }
  return 0;
}

// "sockets 3, …" without the counts that are 0.
std::string spent(const HostEgress& egress) {
  Evidence evidence;
  egress.observe_spent(evidence);
  std::string text;
  for (const EgressCount& count : kEgressCounts) {
    const Observation* seen = evidence.find(std::string("network.") + count.name);
    if (!seen) continue;
    REQUIRE(seen->value());
    if (*seen->value() != Value(std::uint64_t{0}))
      text += (text.empty() ? "" : ", ") + std::string(count.name) + " " + to_text(*seen->value());
  }
  return text;
}

std::string attached(const HostEgress& egress, const RunCgroup& cgroup) {
  Evidence evidence;
  egress.observe_attached(cgroup, "", evidence);
  const Observation* seen = evidence.find("network.bpf");
  REQUIRE(seen);
  return seen->value() ? to_text(*seen->value()) : "missing: " + std::get<Missing>(seen->seen).why;
}

}  // namespace

TEST_CASE("sockets, connects, sends, packets and bytes are counted exactly, loopback is not egress") {
  OwnCgroup cgroup;
  HostEgress egress = HostEgress::load(policy_with(kAll, false));
  egress.attach(cgroup.get());
  if (!egress.state()) FAIL(egress.state().error().message);
  CHECK(in_cgroup(cgroup, [] {
          for (int i = 0; i < 7; ++i)
            if (!connect_to_nobody("127.0.0.1")) return 1;
          for (int i = 0; i < 5; ++i)
            if (!send_udp("192.0.2.1", 100)) return 2;  // 128 bytes with the headers of IP and UDP
          for (int i = 0; i < 2; ++i)
            if (!send_udp("127.0.0.1", 100)) return 3;
          return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) ? 0 : 4;
        }) == 0);
  CHECK(spent(egress) == "bpf_sockets 14, bpf_ipv4_connects 7, bpf_ipv4_sends 7, bpf_packets 5, bpf_bytes 640");
}

TEST_CASE("connects and sends are told apart by family") {
  OwnCgroup cgroup;
  HostEgress egress = HostEgress::load(policy_with(kAll, false));
  egress.attach(cgroup.get());
  if (!std::filesystem::exists("/proc/net/if_inet6")) {
    MESSAGE("this kernel has no IPv6: its programs are attached and count nothing");
    CHECK(spent(egress) == "");
    return;
  }
  CHECK(in_cgroup(cgroup, [] { return connect_to_nobody("127.0.0.1") ? over_ipv6(3, 2) : 1; }) == 0);
  CHECK(spent(egress) == "bpf_sockets 6, bpf_ipv4_connects 1, bpf_ipv6_connects 3, bpf_ipv6_sends 2");
}

TEST_CASE("inet sockets are refused with EPERM and counted, others are not touched") {
  OwnCgroup cgroup;
  HostEgress egress = HostEgress::load(policy_with(kAll, true));
  egress.attach(cgroup.get());
  if (!egress.state()) FAIL(egress.state().error().message);
  CHECK(in_cgroup(cgroup, [] {
          for (int i = 0; i < 1000; ++i)
            if (::socket(AF_INET, i % 2 ? SOCK_STREAM : SOCK_DGRAM, 0) >= 0 || errno != EPERM) return 1;
          return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) ? 0 : 2;
        }) == 0);
  CHECK(spent(egress) == "bpf_sockets 1000");
  // This process is in another cgroup.
  CHECK(Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
  CHECK(spent(egress) == "bpf_sockets 1000");
}

TEST_CASE("what is attached is what the kernel says, by id, of the leaf") {
  OwnCgroup cgroup;
  cgroup.open_leaf();
  HostEgress egress = HostEgress::load(policy_with(kAll, true));
  CHECK(attached(egress, cgroup.get()) == "none");  // loaded is not attached
  egress.attach(cgroup.get());
  CHECK(attached(egress, cgroup.get()) == "sock_create connect4 connect6 sendmsg4 sendmsg6 egress");
  // The same programs of somebody else do not count as ours.
  const HostEgress other = HostEgress::load(policy_with(kAll, true));
  CHECK(attached(other, cgroup.get()) == "none");
  egress = HostEgress::load(policy_with({EgressCounter::packets}, true));
  egress.attach(cgroup.get());
  CHECK(attached(egress, cgroup.get()) == "egress");
}

TEST_CASE("only the counters that are asked for are attached; none is fine too") {
  OwnCgroup cgroup;
  HostEgress egress = HostEgress::load(policy_with({EgressCounter::connects}, true));
  egress.attach(cgroup.get());
  CHECK(in_cgroup(cgroup, [] { return connect_to_nobody("127.0.0.1") && send_udp("192.0.2.1", 10) ? 0 : 1; }) == 0);
  CHECK(spent(egress) == "bpf_ipv4_connects 1, bpf_ipv4_sends 1");
  cgroup.open_leaf();
  const HostEgress none = HostEgress::load(policy_with({}, true));
  CHECK(none.state());
  CHECK(attached(none, cgroup.get()) == "none");
  CHECK(spent(none) == "");
}
