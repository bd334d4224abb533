// The network namespace of a run, at the door and after everybody in it is dead.
#pragma once

#include <string>

#include "oci/evidence.h"
#include "shim/host_process.h"
#include "shim/sys.h"

namespace benchsand {

// One that the kernel itself puts into every new namespace when its module is loaded.
bool is_fallback_link(const std::string& name);

// Sockets among the descriptors that survive an exec: numbers, or "none".
Result<std::string> socket_descriptors(const HostProcess& process);

// Links, routes, and that no descriptor of init that survives the exec is a socket.
void observe_network_at_door(const HostProcess& process, Evidence& evidence);

// Descriptors on namespaces outlive the processes in them; taken at the door, read after the end.
struct PinnedNamespaces {
  Fd network, mounts;
};
Result<PinnedNamespaces> pin_namespaces(const HostProcess& process);

// What a thread of benchsand reads after it entered the pinned namespaces (the only way once init is a zombie).
struct PinnedTexts {
  Result<std::string> links, ipv4_routes, ipv6_routes, snmp, snmp6, mountinfo;
};
PinnedTexts read_pinned(const PinnedNamespaces& pinned);

void observe_network_at_end(const PinnedTexts& texts, Evidence& evidence);

}  // namespace benchsand
