// Where a front end (`benchsand run --engine …`) and the monitor of its container find each other:
//
//   /run/benchsand/orders/CONTAINERID.json     the order, taken away by the runtime's create
//   /run/benchsand/orders/CONTAINERID.lock     held by the front end
//   /run/benchsand/orders/CONTAINERID.socket   the front end listens; the monitor connects before the container exists, and
//                                              ends the run when the front end is gone
//
// Only root comes there, so whoever can write an order could as well run the task.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/front_order.h"
#include "shim/control.h"

namespace benchsand {

inline constexpr const char* kOrderBase = "/run/benchsand/orders";

// The front end's side. What it has put there goes with it.
class FrontDesk {
 public:
  static Result<FrontDesk> open(const std::string& container, const FrontOrder& order);
  FrontDesk(FrontDesk&&) noexcept = default;
  FrontDesk& operator=(FrontDesk&&) = delete;
  ~FrontDesk();

  const Fd& fd() const { return listener_.fd(); }
  // A runtime of benchsand's was called for the container. Where it cannot be told, yes.
  bool is_order_taken() const;
  // The monitor that has come; call it when fd() is readable.
  Result<ControlConnection> monitor() const { return listener_.accept(); }

 private:
  FrontDesk() = default;
  std::string container_;
  Fd lock_;  // the living from the dead
  ControlListener listener_;
};

// The runtime's side.
struct TakenOrder {
  FrontOrder order;
  ControlConnection front;
};
// Taken once: a container that is started again is an ordinary one. nullopt: nobody of ours has ordered it. An order whose front
// end is gone is an error.
Result<std::optional<TakenOrder>> take_front_order(const std::string& container);

// Of front ends that are gone; a line for each.
Result<std::vector<std::string>> collect_order_garbage();

}  // namespace benchsand
