// From what the command line names to a policy: reads task and profile, asks the host for its facts, decides.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/policy.h"
#include "shim/delegate.h"
#include "shim/host_cgroup.h"

namespace benchsand {

struct TaskRequest {
  std::string task_path;
  std::optional<std::string> profile;  // a name, or a path when it holds a '/'
  std::vector<Setting> settings;
};

inline constexpr const char* kProfileDirectory = "/etc/benchsand/profiles/";

// A profile by name: /etc/benchsand/profiles/NAME.yaml when there is one, else the one built in.
struct ProfileText {
  std::string text;
  std::string name;  // for messages
  std::string sha256;
  std::string request{};  // by what it was found: a name, or an absolute path
};
Result<ProfileText> find_profile(const std::string& name_or_path);
std::vector<std::string> builtin_profile_names();

// Task and profile as they were read and parsed.
struct Documents {
  TaskSpec task;
  TaskSource source;
  ProfileText profile_text;
  Profile profile;
};
Result<Documents> load_documents(const TaskRequest& request);
Result<Policy> decide_policy(const Documents& documents, const HostFacts& host);

Result<Policy> load_policy(const TaskRequest& request, const HostFacts& host);

HostFacts host_facts(CgroupLayout layout, const DelegateFacts& delegate);

// Everything a run needs of this host, or one message that names all that is missing.
struct Host {
  CgroupHost cgroup;
  DelegateBinary delegate;
  HostFacts facts;
};
// What a delegate asks of the cgroup mounts beyond what every run needs.
Result<void> delegate_fits(const CgroupHost& cgroup, const std::string& engine);
Result<Host> require_host(const std::string& engine);

}  // namespace benchsand
