// A network namespace of the suite's own, in which a process answers to every address that the cases try, on the loopback interface:
// what is refused in a whole sandbox has to get through here, and no packet can leave the host.
#pragma once

#include <cstdint>
#include <utility>

#include "shim/helper_process.h"
#include "shim/sys.h"

namespace benchsand::conformance {

struct Reached {
  std::uint64_t connections = 0, datagrams = 0;
};

struct SinkSockets;

class Sink {
 public:
  static Result<Sink> make();
  // The same in a network namespace that there is, which must have nothing but its loopback.
  static Result<Sink> make_in(const Fd& network_namespace);
  const Fd& network_namespace() const { return namespace_; }
  // Since the last time it was asked.
  Result<Reached> reached();

 private:
  static Result<Sink> of(const char* call, const char* object, int (*work)(SinkSockets&, int), int descriptor);
  Sink(HelperProcess helper, Fd network, Fd asks)
      : helper_(std::move(helper)), namespace_(std::move(network)), asks_(std::move(asks)) {}
  HelperProcess helper_;
  Fd namespace_, asks_;
};

}  // namespace benchsand::conformance
