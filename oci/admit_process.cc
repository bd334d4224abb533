#include <algorithm>

#include "oci/admit_rules.h"
#include "oci/process_env.h"
#include "oci/yaml_tree.h"

namespace benchsand::admission {

using nlohmann::json;

namespace {

void args(Admitting& admitting) {
  admitting.result.task.command = admitting.document["process"]["args"].get<std::vector<std::string>>();
}

void cwd(Admitting& admitting) {
  const auto path = admitting.document["process"]["cwd"].get<std::string>();
  if (path.starts_with('/'))
    admitting.result.task.workdir = normal_path(path);
  else
    admitting.refuse("mounts", "the working directory " + in_quotes(path) + " is not absolute",
                     "give an absolute one, as with -w /srv");
}

// The engine decided HOME for the user that it was asked for, which is not the one that the program will be.
void env(Admitting& admitting) {
  const json* list = admitting.find("/process/env");
  if (list == nullptr) return;
  const json* uid = admitting.find("/process/user/uid");
  const bool same_user = uid != nullptr && *uid == admitting.context.profile.uid;
  const auto scrubbed = scrub_env(list->get<std::vector<std::string>>(), same_user);
  admitting.result.task.env = scrubbed.kept;
  for (const auto& change : scrubbed.edits) admitting.result.edits.push_back(change);
  for (const auto& refusal : scrubbed.refusals) admitting.result.refusals.push_back(refusal);
}

void terminal(Admitting& admitting) {
  const json* asked = admitting.find("/process/terminal");
  admitting.result.terminal = asked != nullptr && asked->get<bool>();
}

void user(Admitting& admitting) {
  const Profile& profile = admitting.context.profile;
  const json ours = {{"uid", profile.uid}, {"gid", profile.gid}};
  const json* asked = admitting.find("/process/user");
  if (asked == nullptr || *asked != ours)
    admitting.edit("/process/user", asked == nullptr ? "root" : brief(*asked), ours.dump(), "privileges");
}

void capabilities(Admitting& admitting) {
  const json* asked = admitting.find("/process/capabilities");
  if (asked == nullptr) return;
  std::size_t most = 0;
  for (const auto& [name, list] : asked->items())
    if (list.is_array()) most = std::max(most, list.size());
  if (most > 0) admitting.edit("/process/capabilities", std::to_string(most) + " capabilities", "none", "privileges");
}

void no_new_privileges(Admitting& admitting) {
  const json* asked = admitting.find("/process/noNewPrivileges");
  if (asked == nullptr || !asked->get<bool>())
    admitting.edit("/process/noNewPrivileges", "false", "true", "privileges");
}

// An engine sets a number of descriptors that nobody asked for, often far above what a profile gives: only a lower one is a wish.
void rlimits(Admitting& admitting) {
  const json* list = admitting.find("/process/rlimits");
  if (list == nullptr) return;
  const auto& profile = admitting.context.profile;
  const auto most = profile.limits.find("open_files");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const json& limit = (*list)[i];
    const std::string field = "/process/rlimits/" + std::to_string(i);
    const auto soft = bound(limit.contains("soft") ? &limit["soft"] : nullptr);
    const bool files = limit.contains("type") && limit["type"] == "RLIMIT_NOFILE";
    if (files && soft && most != profile.limits.end() && *soft <= most->second.maximum)
      admitting.ask("open_files", *soft, field);
    else
      admitting.edit(field, brief(limit), "as the profile says", "privileges");
  }
}

void oom_score(Admitting& admitting) {
  const json* asked = admitting.find("/process/oomScoreAdj");
  if (asked != nullptr && *asked != 1000) admitting.edit("/process/oomScoreAdj", brief(*asked), "1000", "privileges");
}

void scheduling(Admitting& admitting) {
  for (const char* field : {"/process/scheduler", "/process/ioPriority", "/process/execCPUAffinity"})
    admitting.drop(field, "the kernel's default", "cpu-time");
  admitting.drop("/process/commandLine", "nothing", "evidence");
}

void keep(Admitting&) {}

}  // namespace

const std::vector<NamedRule> kProcessRules{
    {{"/process/args", "evidence", "the command, as it is"}, args},
    {{"/process/cwd", "mounts", "the working directory, as it is"}, cwd},
    {{"/process/env", "privileges",
      "kept, but `NOTIFY_SOCKET`, what is no `NAME=VALUE`, and `HOME` where the user changes; `LISTEN_FDS` and its "
      "like are refused"},
     env},
    {{"/process/terminal", "stdio",
      "kept, as a named loosening: what goes through a terminal is neither counted nor capped"},
     terminal},
    {{"/process/user", "privileges", "the profile's user and group, no other groups"}, user},
    {{"/process/capabilities", "privileges", "none in any set"}, capabilities},
    {{"/process/noNewPrivileges", "privileges", "true"}, no_new_privileges},
    {{"/process/rlimits", "privileges",
      "the profile's; a number of open files up to the profile's maximum is a wish for `open_files`"},
     rlimits},
    {{"/process/oomScoreAdj", "privileges", "1000"}, oom_score},
    {{"/process/scheduler, ioPriority, execCPUAffinity", "cpu-time", "left out"}, scheduling},
    {{"/process/apparmorProfile, selinuxLabel, consoleSize", "privileges", "kept"}, keep},
};

}  // namespace benchsand::admission
