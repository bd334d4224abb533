// What benchsand-runtime does for each verb. The value of a verb is the exit status of the program.
#pragma once

#include <string>

#include "oci/runtime_args.h"
#include "oci/runtime_settings.h"
#include "shim/container_state.h"
#include "shim/load.h"

namespace benchsand {

struct RuntimeContext {
  std::string called_as;  // argv[0]
  std::string profile;    // its name, from argv[0]
};

// Fixes the form of `call` too: root and bundle absolute, the root canonical.
RuntimeContext make_runtime_context(const std::string& called_as, const std::string& profile, RuntimeCall& call);

// A file of the host's owner: must be root's, and nobody else may write it. nullopt: there is none.
Result<std::optional<std::string>> read_house_file(const std::string& path);
// The profile of the context; a file of it must be root's.
Result<ProfileText> runtime_profile(const RuntimeContext& context);
// Without the file: the defaults.
Result<RuntimeSettings> load_runtime_settings(const std::string& path = "/etc/benchsand/runtime.yaml");
// crun or runc, by /etc/benchsand/runtime.yaml or by what fits this host.
Result<std::string> choose_delegate();

// shim/runtime_container.cc
Result<int> verb_create(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_start(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_run(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_exec(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_update(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_delete(const RuntimeContext& context, const RuntimeCall& call);

// shim/runtime_look.cc
Result<int> verb_state(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_list(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_ps(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_events(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_features(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_spec(const RuntimeContext& context, const RuntimeCall& call);
std::string version_text();

// shim/runtime_signal.cc
Result<int> verb_kill(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_pause(const RuntimeContext& context, const RuntimeCall& call);
Result<int> verb_resume(const RuntimeContext& context, const RuntimeCall& call);

// Executes the delegate with the same call, and returns only when that fails.
Result<int> pass_through(const RuntimeCall& call);

}  // namespace benchsand
