// Runs the delegate for one call of an engine, with the descriptors that call has.
#pragma once

#include <string>
#include <vector>

#include "oci/runtime_args.h"
#include "shim/container_state.h"
#include "shim/delegate.h"

namespace benchsand {

enum class Stdio { none, inherited };

// `arguments` without argv[0]; the environment is a PATH and nothing else. Waits: its exit status, or 128 + the signal.
Result<int> run_delegate(const DelegateBinary& delegate, const std::vector<std::string>& arguments, Stdio stdio);

// Where the delegate finds the container, and nothing else yet.
DelegatePlaces delegate_places(const ContainerState& state);
std::string run_folder_of(const std::string& run_id);
// The last error in the log of a delegate's call; empty when there is none.
std::string last_words(const std::string& log);

}  // namespace benchsand
