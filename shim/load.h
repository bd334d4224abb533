// From what the command line names to a policy: reads task and profile, asks the host for its facts, decides.
#pragma once

#include <functional>
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
  // Unpacks an image that an engine has, and gives its digest. Absent: nothing is asked of an engine.
  std::function<Result<std::string>(const ImageRef&)> unpack_stored{};
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

// Of a task whose image is in an engine's store: unpacks it, unless it is named by its digest and was unpacked before.
Result<void> settle_image(const TaskRequest& request, Policy& policy);

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
