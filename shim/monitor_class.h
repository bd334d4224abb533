// The class behind run_monitor(): monitor.cc tells its story, monitor_calls.cc is what the engine's calls are answered.
#pragma once

#include <map>
#include <set>

#include "shim/container_output.h"
#include "shim/init_hold.h"
#include "shim/monitor.h"
#include "shim/sandbox.h"

namespace benchsand {

class Monitor : private Sandbox {
 public:
  Monitor(const Host& host, ContainerOrder order, ControlConnection report)
      : Sandbox(host, order.policy, nobodys_hooks()), order_(std::move(order)), report_(std::move(report)) {}

  Result<void> create();
  Result<void> story();
  void finish(const Result<void>& told);

 private:
  static const RunHooks& nobodys_hooks();
  Result<void> take_stdio();
  Result<void> claim();
  Result<void> open_sources();
  Result<void> check_rootfs();
  Result<void> check_sources();
  std::unexpected<Error> refuse(const char* wall, const std::string& what, const char* cure);
  Result<void> prepare();
  Result<void> seed_output();
  Result<void> run_delegate_create();
  Result<void> delegate_created();
  Result<void> note_unfinished();
  Result<void> wait_for_start();
  Result<bool> heard_start();
  Result<void> wait_for_listener();
  Result<void> start();
  Result<void> watch();
  Result<void> collect();
  std::string why_not(const RunReport& report) const;
  void answer_callers(const std::string& why);
  Result<std::optional<int>> let_init_die() override;

  Result<std::optional<Cause>> hear_calls();
  void left(int caller);
  nlohmann::json begin_exec(int caller, const nlohmann::json& message);
  nlohmann::json begin_update(int caller, const nlohmann::json& message);
  nlohmann::json end_update(int caller, const nlohmann::json& message);

  ContainerOrder order_;
  ControlConnection report_;
  std::optional<ControlDesk> desk_;
  std::optional<InitHold> hold_;
  std::optional<ContainerOutput> container_output_;
  Fd init_;           // pidfd of the container's init, from the delegate's create on
  int starter_ = -1;  // the call that waits for the door
  bool claimed_ = false, created_ = false;
  std::set<int> execs_;            // callers whose exec the delegate does just now
  std::map<int, Limits> updates_;  // and whose update
};

}  // namespace benchsand
