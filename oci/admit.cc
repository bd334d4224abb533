#include "oci/admit.h"

#include <algorithm>

#include "oci/admit_rules.h"
#include "oci/config_shape.h"
#include "oci/runtime_error.h"
#include "oci/sha256.h"
#include "oci/strict_json.h"
#include "oci/units.h"
#include "oci/yaml_tree.h"

namespace benchsand {

using nlohmann::json;

namespace admission {

namespace {

constexpr std::size_t kLongestBrief = 160;

void erase(json& document, const std::string& pointer) {
  const json::json_pointer place(pointer);
  json& parent = document.at(place.parent_pointer());
  parent.erase(place.back());
}

}  // namespace

const json* Admitting::find(const std::string& pointer) const {
  const json::json_pointer place(pointer);
  return document.contains(place) ? &document.at(place) : nullptr;
}

void Admitting::edit(const std::string& field, const std::string& from, const std::string& to,
                     const std::string& wall) {
  result.edits.push_back({field, from, to, wall});
}

void Admitting::refuse(const std::string& wall, const std::string& what, const std::string& cure) {
  result.refusals.push_back({wall, what, cure});
}

void Admitting::drop(const std::string& pointer, const std::string& to, const std::string& wall) {
  const json* value = find(pointer);
  if (value == nullptr) return;
  const bool empty = value->is_structured() ? value->empty() : *value == json("");
  if (!empty) edit(pointer, brief(*value), to, wall);
  erase(document, pointer);
}

void Admitting::ask(const std::string& limit, std::uint64_t value, const std::string& field) {
  const auto known =
      std::find_if(kLimitFields.begin(), kLimitFields.end(), [&](const LimitField& f) { return f.name == limit; });
  if (known == kLimitFields.end()) return;
  const auto asked = result.task.limits.find(limit);
  if (asked != result.task.limits.end() && asked->second.value <= value) return;
  result.task.limits[limit] = {true, value, format_quantity(value, known->unit), field};
}

std::string brief(const json& value) {
  const std::string text = value.dump();
  if (text.size() <= kLongestBrief) return text;
  const std::string kind = value.is_array() ? "a list" : value.is_object() ? "an object" : "text";
  return kind + " of " + std::to_string(text.size()) + " bytes";
}

std::optional<std::uint64_t> bound(const json* value) {
  if (value == nullptr || !value->is_number_unsigned()) return std::nullopt;
  const auto number = value->get<std::uint64_t>();
  return number > 0 ? std::optional(number) : std::nullopt;
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_inside(std::string_view path, std::string_view directory) {
  return path == directory || directory == "/" || (path.starts_with(directory) && path[directory.size()] == '/');
}

std::string wall_of_limit(const std::string& name) {
  if (one_of(name, {"memory", "processes"})) return name;
  if (one_of(name, {"disk", "files"})) return "output";
  if (one_of(name, {"stdout", "stderr"})) return "stdio";
  if (name == "wall_time") return "wall-time";
  return name == "open_files" ? "privileges" : "cpu-time";
}

std::string normal_path(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string part = path.substr(start, end - start);
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
    start = end + 1;
  }
  std::string result;
  for (const auto& part : parts) result += "/" + part;
  return result.empty() ? "/" : result;
}

}  // namespace admission

using namespace admission;

namespace {

std::vector<NamedRule> all_rules() {
  std::vector<NamedRule> rules;
  for (const auto* part : {&kTopRules, &kProcessRules, &kMountRules, &kLinuxRules, &kResourceRules})
    rules.insert(rules.end(), part->begin(), part->end());
  return rules;
}

std::string caller_of(const Admitting& admitting) {
  if (const json* manager = admitting.find("/annotations/io.container.manager"))
    return *manager == "libpod" ? "podman" : "unknown";
  const auto names = [&](std::string_view part) {
    return admitting.context.bundle.find(part) != std::string::npos ||
           admitting.context.root.find(part) != std::string::npos;
  };
  if (names("/moby/") || admitting.context.root.ends_with("/moby")) return "docker";
  return names("/io.containerd.") || names("/containerd/") ? "containerd" : "unknown";
}

// What every later rule relies on.
Result<void> check_essentials(const json& document) {
  for (const char* pointer : {"/process", "/process/args", "/process/cwd", "/root/path"})
    if (!document.contains(json::json_pointer(pointer)))
      return usage(std::string("config.json: ") + in_quotes(pointer) + ": is missing");
  if (document["process"]["args"].empty()) return usage("config.json: \"/process/args\": the program is missing");
  return {};
}

// The spec says that a runtime ignores what it does not know, so it is left where nothing of benchsand's is laid over it.
void note_unknown(Admitting& admitting, const std::vector<std::string>& unknown) {
  for (const auto& pointer : unknown) {
    const std::string parent = json::json_pointer(pointer).parent_pointer().to_string();
    if (one_of(parent, {"", "/process", "/linux"}))
      admitting.result.notices.push_back(in_quotes(pointer) + ": unknown to benchsand, handed on to the delegate");
    else if (parent != "/hooks")  // refused there, whatever its name
      admitting.edit(pointer, "unknown to benchsand", "left out", "evidence");
  }
}

// Bounds are compared here and not left to decide, so that every refusal of one container comes at once.
void check_maxima(Admitting& admitting) {
  const Profile& profile = admitting.context.profile;
  for (const auto& field : kLimitFields) {
    const std::string name(field.name);
    const auto asked = admitting.result.task.limits.find(name);
    const auto allowed = profile.limits.find(name);
    if (asked == admitting.result.task.limits.end() || allowed == profile.limits.end()) continue;
    if (asked->second.value <= allowed->second.maximum) continue;
    const std::string most = format_quantity(allowed->second.maximum, field.unit);
    admitting.refuse(wall_of_limit(name),
                     asked->second.where + " asks for " + asked->second.text + ", over the maximum of profile " +
                         in_quotes(profile.name) + ", " + most,
                     "ask for at most " + most);
  }
}

// What a line of decide's message speaks of: "limits.memory: …", "output: …".
Refused refusal_of(const std::string& problem) {
  constexpr std::string_view kLimits = "limits.";
  std::string wall = "mounts";
  if (const auto at = problem.find(kLimits); at != std::string::npos) {
    const std::size_t start = at + kLimits.size();
    const std::size_t end = problem.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", start);
    wall = wall_of_limit(problem.substr(start, end == std::string::npos ? end : end - start));
  } else if (problem.starts_with("output")) {
    wall = "output";
  } else if (problem.starts_with("env") || problem.starts_with("command")) {
    wall = "privileges";
  }
  return {wall, problem, "start it with what the profile allows"};
}

}  // namespace

Result<Admission> admit(const std::string& config_text, const AdmitContext& context) {
  Admission admission;
  admission.sha256 = sha256_hex(config_text);
  admission.document = TRY(parse_strict_json(config_text, "config.json"));
  std::vector<std::string> unknown;
  TRY_VOID(check_config_shape(admission.document, "", "config.json", unknown));
  TRY_VOID(check_essentials(admission.document));
  Admitting admitting{admission.document, context, admission};
  admission.caller = caller_of(admitting);
  note_unknown(admitting, unknown);
  for (const auto& rule : all_rules()) rule.apply(admitting);
  check_maxima(admitting);
  return admission;
}

std::optional<Policy> decide_admitted(Admission& admission, const AdmitContext& context,
                                      const std::string& profile_sha256, const HostFacts& host) {
  if (!admission.refusals.empty()) return std::nullopt;
  const TaskSource source{admission.sha256, context.bundle};
  auto policy = decide(admission.task, source, context.profile, profile_sha256, host);
  if (policy) {
    if (admission.terminal) take_terminal(*policy);
    policy->notices.insert(policy->notices.end(), admission.notices.begin(), admission.notices.end());
    return std::move(*policy);
  }
  const std::string& message = policy.message();
  for (std::size_t start = 0; start < message.size();) {
    const std::size_t end = std::min(message.find('\n', start), message.size());
    admission.refusals.push_back(refusal_of(message.substr(start, end - start)));
    start = end + 1;
  }
  return std::nullopt;
}

std::string refusal_text(const std::vector<Refused>& refusals) {
  std::string text = "benchsand refuses this container";
  for (std::size_t i = 0; i < refusals.size(); ++i)
    text += (i == 0 ? ": " : "; ") + std::string("wall ") + refusals[i].wall + ": " + refusals[i].what +
            " (cure: " + refusals[i].cure + ")";
  return neutral_wording(text);
}

std::vector<AdmitRule> admit_rules() {
  std::vector<AdmitRule> rules;
  for (const auto& rule : all_rules()) rules.push_back(rule.rule);
  return rules;
}

std::string admit_rules_page() {
  std::string page = "| field of `config.json` | wall | what becomes of it |\n|---|---|---|\n";
  for (const auto& rule : admit_rules())
    page += "| `" + std::string(rule.field) + "` | `" + rule.wall + "` | " + rule.words + " |\n";
  return page;
}

}  // namespace benchsand
