#include <algorithm>

#include "oci/admit_rules.h"
#include "oci/strict_json.h"
#include "oci/units.h"
#include "oci/yaml_reader.h"

namespace benchsand::admission {

using nlohmann::json;

namespace {

void version(Admitting& admitting) {
  const json* asked = admitting.find("/ociVersion");
  if (asked != nullptr && *asked != "1.0.0") admitting.edit("/ociVersion", brief(*asked), "\"1.0.0\"", "evidence");
}

// Docker attaches the container's network with a hook of its own.
bool is_network_hook(const json& hook) {
  return hook.contains("args") && !hook["args"].empty() && hook["args"][0] == "libnetwork-setkey";
}

void hooks(Admitting& admitting) {
  const json* all = admitting.find("/hooks");
  if (all == nullptr) return;
  for (const auto& [moment, list] : all->items()) {
    if (!list.is_array()) continue;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const json& hook = list[i];
      const std::string field = "/hooks/" + pointer_token(moment) + "/" + std::to_string(i);
      const std::string path = hook.is_object() && hook.contains("path") ? hook["path"].get<std::string>() : "";
      if (hook.is_object() && is_network_hook(hook))
        admitting.edit(field, brief(hook), "left out: the network stays empty", "network");
      else
        admitting.refuse("privileges", "the " + moment + " hook " + in_quotes(path) + " would run on the host",
                         "start it without what adds that hook");
    }
  }
  admitting.document.erase("hooks");
}

bool starts_with_one_of(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  for (const auto prefix : prefixes)
    if (text.starts_with(prefix)) return true;
  return false;
}

// They make a runtime open files, load plugins, or start something else than a container.
bool is_command_to_runtime(std::string_view name) {
  return starts_with_one_of(name, {"run.oci.", "org.systemd.property.", "org.criu.", "krun.", "module.wasm.",
                                   "dev.gvisor.", "io.containers.trace-"});
}

bool is_inert(std::string_view name) {
  return starts_with_one_of(name, {"org.opencontainers.image.", "io.kubernetes.cri.", "io.kubernetes.cri-o.",
                                   "io.podman.annotations."}) ||
         name == "io.container.manager";
}

void take_limit(Admitting& admitting, const std::string& name, const std::string& limit, const std::string& text) {
  const auto field = std::find_if(kLimitFields.begin(), kLimitFields.end(),
                                  [&](const LimitField& candidate) { return candidate.name == limit; });
  if (field == kLimitFields.end())
    return admitting.refuse("evidence",
                            "annotation " + in_quotes(name) + " names no limit" + did_you_mean(limit, limit_names()),
                            "see docs/limits.md");
  const auto quantity = parse_quantity(text, field->unit);
  if (!quantity)
    return admitting.refuse(wall_of_limit(limit), "annotation " + in_quotes(name) + ": " + quantity.message(),
                            "write it as in a task, as 2s or 64MiB");
  if (quantity->usable)
    admitting.ask(limit, quantity->value, name);
  else
    admitting.edit("/annotations/" + pointer_token(name), in_quotes(text), "the profile's default",
                   wall_of_limit(limit));
}

void take_own(Admitting& admitting, const std::string& name, const std::string& text) {
  constexpr std::string_view kLimits = "benchsand.limits.";
  if (name.starts_with(kLimits)) return take_limit(admitting, name, name.substr(kLimits.size()), text);
  admitting.refuse("evidence", "annotation " + in_quotes(name) + " is none of benchsand's",
                   "use benchsand.limits.NAME");
}

void annotations(Admitting& admitting) {
  const json* all = admitting.find("/annotations");
  if (all == nullptr) return;
  json kept = json::object();
  for (const auto& [name, text] : all->items()) {
    if (is_command_to_runtime(name))
      admitting.refuse("evidence", "annotation " + in_quotes(name) + " commands the runtime", "leave it out");
    else if (is_inert(name))
      kept[name] = text;
    else if (name.starts_with("benchsand."))
      take_own(admitting, name, text.get<std::string>());
    else
      admitting.edit("/annotations/" + pointer_token(name), brief(text), "left out", "evidence");
  }
  admitting.document.erase("annotations");
  if (!kept.empty()) admitting.document["annotations"] = kept;
}

void names(Admitting& admitting) {
  const json* hostname = admitting.find("/hostname");
  if (hostname != nullptr && *hostname != "benchsand")
    admitting.edit("/hostname", brief(*hostname), "\"benchsand\"", "namespaces");
  admitting.drop("/domainname", "left out", "namespaces");
}

void other_platforms(Admitting& admitting) {
  for (const char* name : {"/solaris", "/windows", "/vm", "/zos", "/freebsd"})
    admitting.drop(name, "left out", "evidence");
}

}  // namespace

const std::vector<NamedRule> kTopRules{
    {{"/ociVersion", "evidence", "1.0.0, which every delegate reads"}, version},
    {{"/hooks", "network", "Docker's `libnetwork-setkey` is left out, any other refused (wall `privileges`)"}, hooks},
    {{"/annotations", "evidence",
      "kept: `org.opencontainers.image.*`, `io.kubernetes.cri.*`, `io.podman.annotations.*`, `io.container.manager`; "
      "`benchsand.limits.NAME` is a limit; refused: what commands a runtime (`run.oci.*`, `org.systemd.property.*`, "
      "`org.criu.*`, "
      "`krun.*`, `module.wasm.*`, `dev.gvisor.*`); others left out"},
     annotations},
    {{"/hostname, domainname", "namespaces", "`benchsand`, none"}, names},
    {{"/solaris, windows, vm, zos, freebsd", "evidence", "left out"}, other_platforms},
};

}  // namespace benchsand::admission
