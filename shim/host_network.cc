#include "shim/host_network.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <set>
#include <thread>

#include "oci/kernel_files.h"

namespace benchsand {

namespace {

// The kernel puts these into every new namespace when their modules are loaded (net.core.fb_tunnels_only_for_init_net=0).
// They are down and have no address; a route through one, or a byte sent, breaks the wall all the same.
const std::set<std::string> kFallbackLinks = {"tunl0",   "sit0",    "gre0",    "gretap0", "erspan0",
                                              "ip6tnl0", "ip6gre0", "ip_vti0", "ip6_vti0"};

Result<std::string> link_names(const Result<std::string>& text, const std::string& source) {
  if (!text) return std::unexpected(text.error());
  std::string names;
  for (const auto& link : TRY(parse_net_dev(*text, source)))
    if (!is_fallback_link(link.name) || link.tx_bytes != 0) names += (names.empty() ? "" : " ") + link.name;
  return names;
}

// Interfaces that some route leads to, other than lo. Without IPv6 there is no ipv6_route file.
Result<std::string> routes(const Result<std::string>& ipv4, const Result<std::string>& ipv6,
                           const std::string& source) {
  if (!ipv4) return std::unexpected(ipv4.error());
  std::set<std::string> found;
  for (const auto& link : TRY(parse_ipv4_routes(*ipv4, source + "route"))) found.insert(link);
  if (!ipv6 && ipv6.error().error_number != ENOENT) return std::unexpected(ipv6.error());
  if (ipv6)
    for (const auto& link : TRY(parse_ipv6_routes(*ipv6, source + "ipv6_route"))) found.insert(link);
  found.erase("lo");
  std::string text;
  for (const auto& link : found) text += (text.empty() ? "" : " ") + link;
  return text.empty() ? "none" : text;
}

Result<std::uint64_t> egress_bytes(const Result<std::string>& text, const std::string& source) {
  if (!text) return std::unexpected(text.error());
  std::uint64_t sum = 0;
  for (const auto& link : TRY(parse_net_dev(*text, source)))
    if (link.name != "lo") sum += link.tx_bytes;
  return sum;
}

}  // namespace

bool is_fallback_link(const std::string& name) {
  return kFallbackLinks.contains(name);
}

// A socket that came along would be charged to the cgroup and namespace that it was made in.
Result<std::string> socket_descriptors(const HostProcess& process) {
  std::string found;
  const Fd fds = TRY(sys::open_directory(process.dir().get(), "fd"));
  for (const auto& name : TRY(sys::list_directory(fds.get(), "."))) {
    if (!TRY(sys::readlinkat(fds.get(), name)).starts_with("socket:")) continue;
    const std::string file = "fdinfo/" + name;
    const auto flags = TRY(parse_fd_flags(TRY(process.read(file)), process.name(file)));
    if ((flags & O_CLOEXEC) == 0) found += (found.empty() ? "" : " ") + name;
  }
  return found.empty() ? "none" : found;
}

void observe_network_at_door(const HostProcess& process, Evidence& evidence) {
  evidence.take("network.links", link_names(process.read("net/dev"), process.name("net/dev")), process.name("net/dev"));
  evidence.take("network.routes",
                routes(process.read("net/route"), process.read("net/ipv6_route"), process.name("net/")),
                process.name("net/route") + ", ipv6_route");
  evidence.take("network.descriptors", socket_descriptors(process), process.name("fd"));
}

Result<PinnedNamespaces> pin_namespaces(const HostProcess& process) {
  PinnedNamespaces pinned;
  pinned.network = TRY(process.open_namespace("net"));
  pinned.mounts = TRY(process.open_namespace("mnt"));
  return pinned;
}

PinnedTexts read_pinned(const PinnedNamespaces& pinned) {
  const auto not_read = [] { return fault("read the pinned namespaces: not reached"); };
  PinnedTexts texts = {not_read(), not_read(), not_read(), not_read(), not_read(), not_read()};
  std::thread([&] {
    // The host's own procfs, held across the switch: the container's /proc is of a pid namespace that has ended.
    const auto self = sys::open_directory(sys::kHere, "/proc/self/task");
    const auto thread =
        self ? sys::open_directory(self->get(), std::to_string(::gettid())) : Result<Fd>(std::unexpected(self.error()));
    const auto all = [&](const std::unexpected<Error>& why) { texts = {why, why, why, why, why, why}; };
    if (!thread) return all(std::unexpected(thread.error()));
    // CLONE_FS: a thread that shares its root directory with others may not change its mount namespace.
    if (::unshare(CLONE_FS) != 0) return all(sys_error("unshare", "CLONE_FS", errno));
    if (::setns(pinned.network.get(), CLONE_NEWNET) != 0) return all(sys_error("setns", "network", errno));
    if (::setns(pinned.mounts.get(), CLONE_NEWNS) != 0) return all(sys_error("setns", "mounts", errno));
    texts = {sys::read_file(thread->get(), "net/dev"),        sys::read_file(thread->get(), "net/route"),
             sys::read_file(thread->get(), "net/ipv6_route"), sys::read_file(thread->get(), "net/snmp"),
             sys::read_file(thread->get(), "net/snmp6"),      sys::read_file(thread->get(), "mountinfo")};
  }).join();
  return texts;
}

void observe_network_at_end(const PinnedTexts& texts, Evidence& evidence) {
  const std::string source = "pinned network namespace: ";
  evidence.take("network.links.end", link_names(texts.links, source + "net/dev"), source + "net/dev");
  evidence.take("network.routes.end", routes(texts.ipv4_routes, texts.ipv6_routes, source + "net/"),
                source + "net/route, ipv6_route");
  evidence.take("network.egress_bytes", egress_bytes(texts.links, source + "net/dev"), source + "net/dev");
  const auto ipv4 = texts.snmp ? parse_snmp(*texts.snmp, source + "net/snmp", "Ip", "OutNoRoutes")
                               : Result<std::uint64_t>(std::unexpected(texts.snmp.error()));
  evidence.take("network.ipv4_no_route", ipv4, source + "net/snmp Ip OutNoRoutes");
  if (!texts.snmp6 && texts.snmp6.error().error_number == ENOENT)
    return evidence.set("network.ipv6_no_route", std::string("no IPv6"), source + "net/snmp6");
  const auto ipv6 = texts.snmp6 ? parse_snmp6(*texts.snmp6, source + "net/snmp6", "Ip6OutNoRoutes")
                                : Result<std::uint64_t>(std::unexpected(texts.snmp6.error()));
  evidence.take("network.ipv6_no_route", ipv6, source + "net/snmp6 Ip6OutNoRoutes");
}

}  // namespace benchsand
