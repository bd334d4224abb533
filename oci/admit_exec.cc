#include "oci/admit_exec.h"

#include <algorithm>

#include "oci/admit_rules.h"
#include "oci/config_shape.h"
#include "oci/process_env.h"
#include "oci/strict_json.h"
#include "oci/yaml_tree.h"

namespace benchsand {

using nlohmann::json;
using namespace admission;

namespace {

Result<void> check_essentials(const json& process) {
  for (const char* name : {"args", "cwd"})
    if (!process.contains(name)) return usage(std::string("process: \"/") + name + "\": is missing");
  if (process["args"].empty()) return usage("process: \"/args\": the program is missing");
  return {};
}

// What an exec leaves out is the policy's own: HOME, PATH and TMPDIR always are.
json environment(const json& asked, const Policy& policy, ExecAdmission& result) {
  const json* uid = asked.contains("user") && asked["user"].contains("uid") ? &asked["user"]["uid"] : nullptr;
  const auto list = asked.contains("env") ? asked["env"].get<std::vector<std::string>>() : std::vector<std::string>();
  auto scrubbed = scrub_env(list, uid != nullptr && *uid == policy.uid);
  result.edits.insert(result.edits.end(), scrubbed.edits.begin(), scrubbed.edits.end());
  result.refusals.insert(result.refusals.end(), scrubbed.refusals.begin(), scrubbed.refusals.end());
  for (const auto& variable : policy.env) {
    const std::string name = variable.substr(0, variable.find('='));
    if (one_of(name, {"HOME", "PATH", "TMPDIR"})) scrubbed.kept.try_emplace(name, variable.substr(name.size() + 1));
  }
  json env = json::array();
  for (const auto& [name, value] : scrubbed.kept) env.push_back(name + "=" + value);
  return env;
}

// Of each limit that the policy has, the lower one. One that it has not is no wish: an engine's default, for another user.
json rlimits(const json& asked, const Policy& policy, ExecAdmission& result) {
  auto limits = process_limits(policy);
  if (asked.contains("rlimits"))
    for (const json& limit : asked["rlimits"]) {
      const auto ours = std::find_if(limits.begin(), limits.end(), [&](const ProcessLimit& known) {
        return limit.contains("type") && limit["type"] == known.type;
      });
      const json* soft = limit.contains("soft") ? &limit["soft"] : nullptr;
      const bool lower = ours != limits.end() && soft != nullptr && soft->is_number_unsigned() &&
                         soft->get<std::uint64_t>() <= ours->value;
      if (lower)
        ours->value = soft->get<std::uint64_t>();
      else
        result.edits.push_back({"/process/rlimits", brief(limit), "as the policy says", "privileges"});
    }
  json list = json::array();
  for (const auto& [type, value] : limits) list.push_back({{"type", type}, {"soft", value}, {"hard", value}});
  return list;
}

void note_changes(const json& asked, const json& ours, ExecAdmission& result) {
  for (const char* name : {"user", "noNewPrivileges", "oomScoreAdj"})
    if (!asked.contains(name) || asked[name] != ours[name])
      result.edits.push_back({std::string("/process/") + name, asked.contains(name) ? brief(asked[name]) : "not there",
                              ours[name].dump(), "privileges"});
  if (asked.contains("capabilities"))
    for (const auto& [set, list] : asked["capabilities"].items())
      if (!list.empty())
        result.edits.push_back({"/process/capabilities/" + pointer_token(set),
                                std::to_string(list.size()) + " capabilities", "none", "privileges"});
  for (const char* name : {"scheduler", "ioPriority", "execCPUAffinity"})
    if (asked.contains(name))
      result.edits.push_back({std::string("/process/") + name, brief(asked[name]), "the kernel's default", "cpu-time"});
}

}  // namespace

Result<ExecAdmission> admit_exec(const std::string& process_text, const Policy& policy, bool limits_at_the_door) {
  const json asked = TRY(parse_strict_json(process_text, "process"));
  std::vector<std::string> unknown;
  TRY_VOID(check_config_shape(asked, "/process", "process", unknown));
  TRY_VOID(check_essentials(asked));
  ExecAdmission result;
  if (policy.exec == ExecRule::deny)
    result.refusals.push_back({"processes", "profile " + in_quotes(policy.profile_name) + " denies further processes",
                               "use a profile that says exec: allow"});
  const auto cwd = asked["cwd"].get<std::string>();
  if (!cwd.starts_with('/'))
    result.refusals.push_back({"mounts", "the working directory " + in_quotes(cwd) + " is not absolute",
                               "give an absolute one, as with -w /srv"});
  // Only what is known to be harmless is taken over: an exec has no walls of its own that would show the rest.
  json& process = result.process;
  for (const char* kept : {"args", "terminal", "consoleSize", "apparmorProfile", "selinuxLabel"})
    if (asked.contains(kept)) process[kept] = asked[kept];
  for (const auto& pointer : unknown)
    result.edits.push_back({"/process" + pointer, "unknown to benchsand", "left out", "privileges"});
  result.terminal = asked.contains("terminal") && asked["terminal"] == true;
  if (result.terminal && !policy.terminal)
    result.refusals.push_back(
        {"stdio", "the container has no terminals", "start the container with -t too, or exec without -t"});
  process["cwd"] = normal_path(cwd);
  process["env"] = environment(asked, policy, result);
  process["user"] = {{"uid", policy.uid}, {"gid", policy.gid}};
  const json none = json::array();
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"})
    process["capabilities"][set] = none;
  process["noNewPrivileges"] = true;
  process["oomScoreAdj"] = 1000;
  json limits = rlimits(asked, policy, result);
  if (!limits_at_the_door) process["rlimits"] = std::move(limits);
  note_changes(asked, process, result);
  return result;
}

}  // namespace benchsand
