// What appears in the network namespace of a run while it runs: a link that somebody moves in, an address, a route. The kernel
// tells it by netlink the moment it happens.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "oci/evidence.h"
#include "oci/verdict.h"
#include "shim/sys.h"

namespace benchsand {

// What a NETLINK_ROUTE message says has appeared: "link eth0 appeared", or empty when it is of no concern.
Result<std::string> appeared_in(std::string_view message);

class NetworkWatch {
 public:
  // To be opened before links and routes are read at the door, so that nothing can come in between.
  static Result<NetworkWatch> open(const Fd& network_namespace);
  const Fd& fd() const { return socket_; }
  // Takes what has been told, a bounded part of it. Cause::killed once anything has appeared, or can have.
  Result<std::optional<Cause>> serve();
  void observe(Evidence& evidence);

 private:
  explicit NetworkWatch(Fd socket) : socket_(std::move(socket)) {}
  bool take_one();

  Fd socket_;
  std::string appeared_, unread_;
};

}  // namespace benchsand
