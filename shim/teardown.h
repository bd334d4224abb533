// Taking a run away, and proving that it is gone. The same steps serve the end of a run, its failures, and gc.
#pragma once

#include <optional>
#include <string>

#include "oci/evidence.h"
#include "shim/delegate.h"
#include "shim/host_cgroup.h"
#include "shim/load.h"
#include "shim/run_folder.h"

namespace benchsand {

// What exists of a run; filled the moment it is made.
struct RunRemains {
  std::optional<RunFolder> folder;
  std::optional<RunCgroup> cgroup;
  std::optional<Delegate> delegate;
  Fd processes;  // of a run without a keeper, from the door on: the proc file system of its pid namespace
  std::string partial_results;
  std::string fault;  // what could not be taken away
};

void tear_down(const Host& host, const std::string& delegate, RunRemains& remains, Evidence& evidence);
Result<void> discard_results(RunRemains& remains);

// One run, if its owner is dead.
Result<void> clear_dead_run(const std::string& id);

// `benchsand gc`: every run whose owner is dead. Returns a line for each thing that was cleared.
Result<std::vector<std::string>> collect_garbage();

}  // namespace benchsand
