// The process in the suite's network namespace that answers: a page by http, an address by DNS, and on other ports a connection that
// is closed once the other side has spoken. It counts who came. Between fork and exit: system calls alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace benchsand::conformance {

inline constexpr std::uint16_t kHttpPort = 80, kDnsPort = 53;
inline constexpr std::uint16_t kTcpPorts[] = {22, kHttpPort, 443, 9418};  // ssh, http, https, git

struct SinkSocket {
  int number = -1;
  bool listens = false;  // else it receives
  std::uint16_t port = 0;
};

struct SinkSockets {
  std::array<SinkSocket, 2 * (std::size(kTcpPorts) + 1)> all;  // of two families
  std::size_t count = 0;
  int asked = -1;  // where its caller asks
  void add(int number, bool listens, std::uint16_t port) { all[count++] = {number, listens, port}; }
};

// Until `lifeline` ends. For each packet of its caller's it gives the Reached since the one before.
void answer(const SinkSockets& sockets, int lifeline);

}  // namespace benchsand::conformance
