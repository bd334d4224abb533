// `benchsand doctor`: what this host can and cannot do, found out by trying. A task of its own runs under `strict` with every
// delegate, and the parts that walls are made of are tried by themselves, so that all that is missing is named at once.
#pragma once

#include <optional>

#include "oci/doctor.h"
#include "oci/policy.h"
#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kFilterDump = "filter dump";
inline constexpr const char* kCapabilities = "capabilities";

Result<DoctorFindings> examine_host();

// An error once a signal has told benchsand to stop. Signals are held back meanwhile, so that what was made is taken away first.
Result<void> go_on(const Fd& signals);

// Each tries for real and takes away what it made. `policy` tells what is needed.
Result<std::vector<DoctorPart>> try_parts(const Policy& policy, const Fd& signals);
std::vector<DoctorEngine> ask_engines();

}  // namespace benchsand
