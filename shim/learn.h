// `benchsand learn`: a trusted program runs with every call notified and let run, and the profile it needed is the result.
#pragma once

#include <string>

#include "shim/run.h"

namespace benchsand {

struct LearnRequest {
  TaskRequest task;
  std::string engine;
  std::string results;  // DIR; empty: no result folder is kept
};

struct LearnReport {
  std::string profile;  // YAML
  RunReport run;        // never scored
};

// An error when the program did not start, or the host or benchsand failed: then nothing was learned.
Result<LearnReport> learn_profile(const LearnRequest& request);

}  // namespace benchsand
