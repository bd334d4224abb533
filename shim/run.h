// One run, from a decided policy to a record. run.cc tells the story; everything it uses is named after what it does.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "oci/learned_profile.h"
#include "oci/verdict.h"
#include "shim/load.h"

namespace benchsand {

class ExecDoors;

struct RunReport {
  nlohmann::json record;
  Verdict verdict;
  End end;
  std::string results;  // DIR/ID; empty: none are kept
};

// Tests look at or falsify what was observed, "at the door" and "at the end". No command line, file or environment
// variable reaches this.
struct RunHooks {
  std::function<void(const std::string& moment, Evidence&)> observed;
  LearnedCalls* learned = nullptr;  // of `benchsand learn`: where the calls are noted
  // What the monitor of an engine's container does, tried on a run: processes are let in, and init is held.
  std::function<void(ExecDoors&)> execs = nullptr;
  bool hold = false;
  const Fd* network_namespace = nullptr;  // with Relaxation::network_namespace: this one is joined
};

// An error is one that left nothing to record: the host could not even prepare. Without a directory no results are kept.
Result<RunReport> run_task(const Host& host, Policy policy, const std::optional<std::string>& results_directory,
                           const RunHooks& hooks = {});

}  // namespace benchsand
