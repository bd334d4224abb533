// The paths by which engines call the runtime: one link for each profile, whose name tells the runtime its profile.
#pragma once

#include <string>
#include <vector>

#include "oci/install.h"
#include "oci/result.h"

namespace benchsand {

struct RuntimeLink {
  std::string name;  // `benchsand` or `benchsand-PROFILE`
  std::string path;
  bool stands = false;  // it is there, and leads to the runtime
};

struct LinkPlan {
  std::string runtime;  // benchsand-runtime itself
  std::vector<RuntimeLink> links;
  std::vector<std::string> notices;  // profiles without a link, and why
};

// For `benchsand`, and for each profile that is built in or in /etc/benchsand/profiles. Links that were installed with the
// runtime (PREFIX/lib/benchsand/runtimes) are used as they are.
Result<LinkPlan> plan_links(EngineKind engine, const std::string& runtime);

std::string links_folder(EngineKind engine);
// What was made, as text. Each engine has links of its own, so that they can go with it.
Result<std::string> make_links(const LinkPlan& plan);
Result<std::vector<std::string>> own_links(EngineKind engine);
// The files of the engine that name its links, noted beside them.
Result<std::vector<std::string>> users_of_links(EngineKind engine);
Result<void> note_users_of_links(EngineKind engine, const std::vector<std::string>& files);
Result<std::string> remove_own_links(EngineKind engine);

}  // namespace benchsand
