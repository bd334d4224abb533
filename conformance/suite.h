// The conformance suite: every attempt in a whole sandbox, and again in one without the wall that is said to refuse it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/suite_report.h"
#include "oci/engine_endpoint.h"
#include "oci/result.h"

namespace benchsand::conformance {

// Not a profile: what an engine gives a container for which nothing is asked.
inline constexpr const char* kEngineDefaults = "engine-defaults";

inline constexpr const char* kRunsc = "runsc";  // gVisor, where it is installed

struct SuiteRequest {
  std::string engine = "crun";
  std::optional<ApiKind> api =
      {};                // of it, where it is Docker or Podman with benchsand's runtime, whose delegate is crun
  bool no_shim = false;  // without benchsand's runtime
  std::string profile = "strict";
  std::string programs =
      {};  // a root file system with the programs of cases/programs.yaml; empty: those are not attempted
  std::vector<std::string> only;  // ids, walls, groups (what is before the first dot), or "ten"; empty: all
  std::function<void(const std::string& text)> progress;  // a line that replaces the one before; null: none
};

Result<SuiteReport> run_suite(const SuiteRequest& request);

// The cases as data, a line each.
Result<std::string> list_cases(const SuiteRequest& request);

}  // namespace benchsand::conformance
