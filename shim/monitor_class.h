// The class behind run_monitor(): monitor.cc tells its story, monitor_calls.cc is what the engine's calls are answered,
// front_monitor.cc what is different where a `benchsand run` has ordered the container.
#pragma once

#include <map>
#include <set>

#include "shim/container_output.h"
#include "shim/init_hold.h"
#include "shim/monitor.h"
#include "shim/result_folder.h"
#include "shim/sandbox.h"

namespace benchsand {

class Monitor : protected Sandbox {
 public:
  Monitor(const Host& host, ContainerOrder order, ControlConnection report)
      : Sandbox(host, order.policy, nobodys_hooks()), order_(std::move(order)), report_(std::move(report)) {}
  ~Monitor() override = default;

  Result<void> create();
  Result<void> story();
  void finish(const Result<void>& told);

 protected:
  // Where files come from and go to: an engine's user has his in the container, a task's author names them.
  virtual Result<void> open_files();
  virtual Result<void> open_desk();
  virtual Result<void> seed_output();
  virtual Result<void> collect();
  virtual Result<void> keep(const RunReport& report);

  Result<void> check_rootfs();
  ContainerOrder order_;
  std::optional<ControlDesk> desk_;
  bool created_ = false;
  int owner_ = -1;  // the front end that ordered the container: it ends with it

 private:
  static const RunHooks& nobodys_hooks();
  Result<void> take_stdio();
  Result<void> claim();
  Result<void> open_sources();
  Result<void> check_sources();
  std::unexpected<Error> refuse(const char* wall, const std::string& what, const char* cure);
  Result<void> prepare();
  Result<void> run_delegate_create();
  Result<void> delegate_created();
  Result<void> note_unfinished();
  Result<void> wait_for_start();
  Result<bool> heard_start();
  Result<void> wait_while_starting(const Fd& fd, std::uint64_t deadline_us);
  Result<void> hear_while_starting();
  Result<void> answer_too_early(const ControlDesk::Heard& heard);
  Result<void> wait_for_listener();
  Result<void> start();
  Result<void> watch();
  std::string why_not(const RunReport& report) const;
  void answer_callers(const std::string& why);
  Result<std::optional<int>> let_init_die() override;

  Result<std::optional<Cause>> hear_calls();
  std::optional<Cause> left(int caller);
  nlohmann::json begin_exec(int caller, const nlohmann::json& message);
  nlohmann::json begin_update(int caller, const nlohmann::json& message);
  nlohmann::json end_update(int caller, const nlohmann::json& message);

  ControlConnection report_;
  std::optional<InitHold> hold_;
  std::optional<ContainerOutput> container_output_;
  Fd init_;                   // pidfd of the container's init, from the delegate's create on
  int starter_ = -1;          // the call that waits for the door
  std::string told_to_stop_;  // by the front end, and why
  bool claimed_ = false, is_anothers_ = false;
  nlohmann::json unfinished_;      // until it is in the store
  Result<void> kept_;              // whether it is
  std::set<int> execs_;            // callers whose exec the delegate does just now
  std::map<int, Limits> updates_;  // and whose update
};

// Of a container that `benchsand run --engine docker|podman` has ordered: streams and outputs go to DIR/ID, as in a direct run.
class FrontMonitor : public Monitor {
 public:
  using Monitor::Monitor;
  ~FrontMonitor() override;

 private:
  Result<void> open_files() override;
  Result<void> open_desk() override;
  Result<void> seed_output() override { return {}; }  // a task's output is empty at the start
  Result<void> collect() override;
  Result<void> keep(const RunReport& report) override;
  const FrontOrder& front() const { return order_.front->order; }

  std::optional<ResultFolder> results_;
  bool written_ = false;
};

}  // namespace benchsand
