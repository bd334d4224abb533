// An engine's socket on another host, by a child process of OpenSSH that forwards a local one to it. The local one is in a file
// system without a name: nobody else can reach it, and nothing is left however suddenly benchsand ends.
#pragma once

#include <string>

#include "oci/engine_endpoint.h"
#include "shim/sys.h"

namespace benchsand {

class SshTunnel {
 public:
  // Returns once the forwarding stands; whether anybody listens at its other end is seen at the first call.
  static Result<SshTunnel> open(const Endpoint& endpoint, std::uint64_t within_us = 30'000'000);
  SshTunnel(SshTunnel&& other) noexcept
      : place_(std::move(other.place_)),
        errors_(std::move(other.errors_)),
        pid_(std::exchange(other.pid_, -1)),
        process_(std::move(other.process_)) {}
  SshTunnel& operator=(SshTunnel&&) = delete;
  ~SshTunnel();  // killed and reaped

  std::string socket() const;  // a path of this process alone
  std::string words();         // what ssh has said since it was asked last, on one line; empty: nothing

 private:
  SshTunnel() = default;
  Result<void> wait_until_it_stands(const Endpoint& endpoint, std::uint64_t within_us);

  Fd place_;   // the detached tmpfs
  Fd errors_;  // the end of a pipe
  pid_t pid_ = -1;
  Fd process_;
};

}  // namespace benchsand
