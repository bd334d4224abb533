// A network namespace of the suite's own, in which it answers to every address that the cases try, on the loopback interface: what
// is refused in a whole sandbox has to get through here, and no packet can leave the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shim/helper_process.h"
#include "shim/sys.h"

namespace benchsand::conformance {

struct Reached {
  std::uint64_t connections = 0, datagrams = 0;
};

class Sink {
 public:
  static Result<Sink> make();
  // The same in a network namespace that there is, which must have nothing but its loopback.
  static Result<Sink> make_in(const Fd& network_namespace);
  const Fd& network_namespace() const { return namespace_; }
  // Since the last time it was asked.
  Result<Reached> reached();

 private:
  static Result<Sink> of(const HelperProcess& helper);

  Fd namespace_;
  std::vector<Fd> listeners_, receivers_;
};

}  // namespace benchsand::conformance
