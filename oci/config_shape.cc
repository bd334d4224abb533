#include "oci/config_shape.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>

#include "oci/strict_json.h"
#include "oci/yaml_tree.h"

namespace benchsand {

using nlohmann::json;

namespace {

enum class Kind { text, integer, boolean, object, list, any };

const char* to_text(Kind kind) {
  switch (kind) {
    case Kind::text:
      return "text";
    case Kind::integer:
      return "an integer";
    case Kind::boolean:
      return "true or false";
    case Kind::object:
      return "an object";
    case Kind::list:
      return "a list";
    case Kind::any:
      return "anything";
  }
  std::abort();  // not a value of the enumeration
}

bool is_a(const json& value, Kind kind) {
  switch (kind) {
    case Kind::text:
      return value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos;
    case Kind::integer:
      return value.is_number_integer();
    case Kind::boolean:
      return value.is_boolean();
    case Kind::object:
      return value.is_object();
    case Kind::list:
      return value.is_array();
    case Kind::any:
      return true;
  }
  std::abort();  // not a value of the enumeration
}

struct Field {
  const char* at;  // pointer; '*' is every element or member, parents before children
  Kind kind;
};

constexpr Field kFields[] = {
    {"/ociVersion", Kind::text},
    {"/hostname", Kind::text},
    {"/domainname", Kind::text},
    {"/annotations", Kind::object},
    {"/annotations/*", Kind::text},
    {"/root", Kind::object},
    {"/root/path", Kind::text},
    {"/root/readonly", Kind::boolean},
    {"/process", Kind::object},
    {"/process/terminal", Kind::boolean},
    {"/process/consoleSize", Kind::object},
    {"/process/consoleSize/height", Kind::integer},
    {"/process/consoleSize/width", Kind::integer},
    {"/process/user", Kind::object},
    {"/process/user/uid", Kind::integer},
    {"/process/user/gid", Kind::integer},
    {"/process/user/umask", Kind::integer},
    {"/process/user/additionalGids", Kind::list},
    {"/process/user/additionalGids/*", Kind::integer},
    {"/process/user/username", Kind::text},
    {"/process/args", Kind::list},
    {"/process/args/*", Kind::text},
    {"/process/commandLine", Kind::any},
    {"/process/env", Kind::list},
    {"/process/env/*", Kind::text},
    {"/process/cwd", Kind::text},
    {"/process/capabilities", Kind::object},
    {"/process/capabilities/bounding", Kind::list},
    {"/process/capabilities/bounding/*", Kind::text},
    {"/process/capabilities/effective", Kind::list},
    {"/process/capabilities/effective/*", Kind::text},
    {"/process/capabilities/inheritable", Kind::list},
    {"/process/capabilities/inheritable/*", Kind::text},
    {"/process/capabilities/permitted", Kind::list},
    {"/process/capabilities/permitted/*", Kind::text},
    {"/process/capabilities/ambient", Kind::list},
    {"/process/capabilities/ambient/*", Kind::text},
    {"/process/rlimits", Kind::list},
    {"/process/rlimits/*", Kind::object},
    {"/process/rlimits/*/type", Kind::text},
    {"/process/rlimits/*/soft", Kind::integer},
    {"/process/rlimits/*/hard", Kind::integer},
    {"/process/noNewPrivileges", Kind::boolean},
    {"/process/apparmorProfile", Kind::text},
    {"/process/selinuxLabel", Kind::text},
    {"/process/oomScoreAdj", Kind::integer},
    {"/process/scheduler", Kind::any},
    {"/process/ioPriority", Kind::any},
    {"/process/execCPUAffinity", Kind::any},
    {"/mounts", Kind::list},
    {"/mounts/*", Kind::object},
    {"/mounts/*/destination", Kind::text},
    {"/mounts/*/type", Kind::text},
    {"/mounts/*/source", Kind::text},
    {"/mounts/*/options", Kind::list},
    {"/mounts/*/options/*", Kind::text},
    {"/mounts/*/uidMappings", Kind::any},
    {"/mounts/*/gidMappings", Kind::any},
    {"/hooks", Kind::object},
    {"/hooks/prestart", Kind::list},
    {"/hooks/createRuntime", Kind::list},
    {"/hooks/createContainer", Kind::list},
    {"/hooks/startContainer", Kind::list},
    {"/hooks/poststart", Kind::list},
    {"/hooks/poststop", Kind::list},
    {"/hooks/*/*", Kind::object},
    {"/hooks/*/*/path", Kind::text},
    {"/hooks/*/*/args", Kind::list},
    {"/hooks/*/*/args/*", Kind::text},
    {"/hooks/*/*/env", Kind::list},
    {"/hooks/*/*/timeout", Kind::integer},
    {"/linux", Kind::object},
    {"/linux/namespaces", Kind::list},
    {"/linux/namespaces/*", Kind::object},
    {"/linux/namespaces/*/type", Kind::text},
    {"/linux/namespaces/*/path", Kind::text},
    {"/linux/uidMappings", Kind::list},
    {"/linux/gidMappings", Kind::list},
    {"/linux/devices", Kind::list},
    {"/linux/devices/*", Kind::object},
    {"/linux/devices/*/path", Kind::text},
    {"/linux/devices/*/type", Kind::text},
    {"/linux/devices/*/major", Kind::integer},
    {"/linux/devices/*/minor", Kind::integer},
    {"/linux/devices/*/fileMode", Kind::integer},
    {"/linux/devices/*/uid", Kind::integer},
    {"/linux/devices/*/gid", Kind::integer},
    {"/linux/netDevices", Kind::object},
    {"/linux/sysctl", Kind::object},
    {"/linux/sysctl/*", Kind::text},
    {"/linux/cgroupsPath", Kind::text},
    {"/linux/rootfsPropagation", Kind::text},
    {"/linux/maskedPaths", Kind::list},
    {"/linux/maskedPaths/*", Kind::text},
    {"/linux/readonlyPaths", Kind::list},
    {"/linux/readonlyPaths/*", Kind::text},
    {"/linux/mountLabel", Kind::text},
    {"/linux/seccomp", Kind::object},
    {"/linux/intelRdt", Kind::object},
    {"/linux/memoryPolicy", Kind::object},
    {"/linux/personality", Kind::object},
    {"/linux/personality/domain", Kind::text},
    {"/linux/personality/flags", Kind::list},
    {"/linux/timeOffsets", Kind::object},
    {"/linux/resources", Kind::object},
    {"/linux/resources/devices", Kind::list},
    {"/linux/resources/devices/*", Kind::object},
    {"/linux/resources/devices/*/allow", Kind::boolean},
    {"/linux/resources/devices/*/type", Kind::text},
    {"/linux/resources/devices/*/major", Kind::integer},
    {"/linux/resources/devices/*/minor", Kind::integer},
    {"/linux/resources/devices/*/access", Kind::text},
    {"/linux/resources/memory", Kind::object},
    {"/linux/resources/memory/limit", Kind::integer},
    {"/linux/resources/memory/reservation", Kind::integer},
    {"/linux/resources/memory/swap", Kind::integer},
    {"/linux/resources/memory/kernel", Kind::integer},
    {"/linux/resources/memory/kernelTCP", Kind::integer},
    {"/linux/resources/memory/swappiness", Kind::integer},
    {"/linux/resources/memory/disableOOMKiller", Kind::boolean},
    {"/linux/resources/memory/useHierarchy", Kind::boolean},
    {"/linux/resources/memory/checkBeforeUpdate", Kind::boolean},
    {"/linux/resources/pids", Kind::object},
    {"/linux/resources/pids/limit", Kind::integer},
    {"/linux/resources/cpu", Kind::object},
    {"/linux/resources/cpu/shares", Kind::integer},
    {"/linux/resources/cpu/quota", Kind::integer},
    {"/linux/resources/cpu/burst", Kind::integer},
    {"/linux/resources/cpu/period", Kind::integer},
    {"/linux/resources/cpu/realtimeRuntime", Kind::integer},
    {"/linux/resources/cpu/realtimePeriod", Kind::integer},
    {"/linux/resources/cpu/cpus", Kind::text},
    {"/linux/resources/cpu/mems", Kind::text},
    {"/linux/resources/cpu/idle", Kind::integer},
    {"/linux/resources/blockIO", Kind::object},
    {"/linux/resources/hugepageLimits", Kind::list},
    {"/linux/resources/network", Kind::object},
    {"/linux/resources/rdma", Kind::object},
    {"/linux/resources/unified", Kind::object},
    {"/linux/resources/unified/*", Kind::text},
    {"/solaris", Kind::any},
    {"/windows", Kind::any},
    {"/vm", Kind::any},
    {"/zos", Kind::any},
    {"/freebsd", Kind::any},
};

struct Node {
  Kind kind = Kind::object;
  std::map<std::string, Node, std::less<>> named;
  std::unique_ptr<Node> every;

  Node& child(const std::string& token) {
    if (token != "*") return named[token];
    if (!every) every = std::make_unique<Node>();
    return *every;
  }
};

Node* walk(Node& from, std::string_view pointer) {
  Node* at = &from;
  while (!pointer.empty()) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    at = &at->child(std::string(pointer.substr(1, end - 1)));
    pointer.remove_prefix(end);
  }
  return at;
}

Node& shape() {
  static Node root = [] {
    Node built;
    for (const Field& field : kFields) walk(built, field.at)->kind = field.kind;
    return built;
  }();
  return root;
}

class Checker {
 public:
  explicit Checker(std::vector<std::string>& unknown) : unknown_(unknown) {}

  // Not deeper than the table; what is unknown is not looked into.
  void check(const json& value, const Node& node, const std::string& pointer) {
    if (!is_a(value, node.kind)) {
      problems_.push_back(in_quotes(pointer) + ": " + to_text(node.kind) + " is due here");
      return;
    }
    if (value.is_array() && node.every)
      for (std::size_t i = 0; i < value.size(); ++i) check(value[i], *node.every, pointer + "/" + std::to_string(i));
    if (!value.is_object()) return;
    for (const auto& [key, member] : value.items()) {
      const std::string place = pointer + "/" + pointer_token(key);
      const auto known = node.named.find(key);
      if (known != node.named.end())
        check_named(member, known->second, node, place);
      else if (!node.named.empty())
        check_unknown(key, node, place);
      else if (node.every)
        check(member, *node.every, place);
    }
  }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  // The lists of hooks have names of their own and elements in common.
  void check_named(const json& member, const Node& known, const Node& parent, const std::string& place) {
    check(member, known, place);
    if (parent.every && member.is_array())
      for (std::size_t i = 0; i < member.size(); ++i)
        check(member[i], *parent.every->every, place + "/" + std::to_string(i));
  }

  void check_unknown(const std::string& key, const Node& node, const std::string& place) {
    const auto variant = std::find_if(node.named.begin(), node.named.end(),
                                      [&](const auto& known) { return folded(known.first) == folded(key); });
    if (variant != node.named.end())
      problems_.push_back(in_quotes(place) + ": some readers take it for " + in_quotes(variant->first));
    else
      unknown_.push_back(place);
  }

  std::vector<std::string>& unknown_;
  std::vector<std::string> problems_;
};

}  // namespace

Result<void> check_config_shape(const json& document, const std::string& part, const std::string& name,
                                std::vector<std::string>& unknown) {
  Checker checker(unknown);
  checker.check(document, *walk(shape(), part), "");
  if (checker.problems().empty()) return {};
  std::string message;
  for (const auto& problem : checker.problems()) message += (message.empty() ? "" : "\n") + name + ": " + problem;
  return usage(message);
}

}  // namespace benchsand
