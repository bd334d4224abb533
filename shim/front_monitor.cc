// The container of a `benchsand run`: its files are the task's, as in run.cc, and it ends with the front end.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "shim/collect.h"
#include "shim/monitor_class.h"

namespace benchsand {

namespace {

// The engine sees an empty container: what it would keep of the streams is in the results.
Result<void> leave_streams_of_the_engine() {
  const Fd null = TRY(sys::openat(sys::kHere, "/dev/null", O_RDWR));
  for (int fd = 0; fd < 3; ++fd)
    if (::dup2(null.get(), fd) < 0) return sys_error("dup2", "/dev/null", errno);
  return {};
}

}  // namespace

// Nothing half-written stays.
FrontMonitor::~FrontMonitor() {
  if (results_ && !written_) static_cast<void>(sys::remove_tree(sys::kHere, results_->partial_path()));
}

Result<void> FrontMonitor::open_files() {
  TRY_VOID(leave_streams_of_the_engine());
  stdin_ = TRY(standard_input(policy_.stdin_file));
  rootfs_ = TRY(open_task_rootfs(policy_));
  TRY_VOID(prepare_mount_points(*rootfs_, policy_));
  inputs_ = TRY(open_inputs(policy_));
  TRY_VOID(require_results_apart(front().results, *rootfs_, inputs_));
  TRY_VOID(make_run_folder(front().run_id));
  results_ = TRY(ResultFolder::plan(front().results, facts_.id));
  TRY_VOID(results_->make());
  out_ = TRY(OutputStream::create(TRY(results_->create_stream("stdout")), "stdout", policy_.limits.stdout_bytes));
  err_ = TRY(OutputStream::create(TRY(results_->create_stream("stderr")), "stderr", policy_.limits.stderr_bytes));
  return {};
}

Result<void> FrontMonitor::open_desk() {
  TRY_VOID(Monitor::open_desk());
  owner_ = TRY(desk_->adopt(std::move(order_.front->front)));
  return {};
}

Result<void> FrontMonitor::collect() {
  auto collected = TRY(collect_outputs(output_->mount(), policy_.collect, TRY(results_->output())));
  facts_.outputs = std::move(collected.files);
  facts_.outputs_refused = std::move(collected.refused);
  facts_.outputs_refused_more = collected.refused_more;
  return {};
}

// The front end compares what the engine says, gives the folder its name, and keeps the record for the container. It is told which
// record it is, for whoever owns the folder that the results are in can put another there.
Result<void> FrontMonitor::keep(const RunReport& report) {
  TRY_VOID(results_->write(report.record, facts_));
  written_ = true;
  static_cast<void>(desk_->say(owner_, {{"record", report.record["digest"]}}));  // without it there is no score
  return {};
}

}  // namespace benchsand
