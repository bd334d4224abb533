#include "oci/task_spec.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "oci/yaml_reader.h"

namespace benchsand {
namespace {

// Keys of the format that a later version will act on. Ignoring them would run another task than the author wrote:
// one without its verification.
constexpr std::array<std::string_view, 2> kLaterKeys{"submit", "verify"};

std::vector<std::string> task_keys() {
  std::vector<std::string> keys{"benchsand", "name",    "profile", "rootfs", "image",  "command",
                                "env",       "workdir", "stdin",   "inputs", "output", "limits"};
  keys.insert(keys.end(), kLaterKeys.begin(), kLaterKeys.end());
  return keys;
}

void refuse_later_keys(const MappingReader& task, Problems& problems) {
  for (const std::string_view key : kLaterKeys) {
    const YamlNode* node = task.find(key);
    if (node != nullptr)
      problems.add(node->key_position, std::string(key) + ": not supported in this version of benchsand");
  }
}

void read_command(const YamlNode& node, TaskSpec& task, Problems& problems) {
  if (node.is_text()) {
    problems.add(
        node.position,
        "command: a list of strings is due, [program, argument, ...]; no shell is involved that would split text");
    return;
  }
  const auto command = read_texts(node, "command", problems);
  if (!command) return;
  if (command->empty() || command->front().empty()) {
    problems.add(node.position, "command: the program is missing");
    return;
  }
  task.command = *command;
}

void read_env(const YamlNode& node, TaskSpec& task, Problems& problems) {
  if (node.kind != YamlNode::Kind::mapping) {
    problems.add(node.position, "env: a mapping of names to texts is due here");
    return;
  }
  for (const YamlNode& child : node.children) {
    if (child.key.empty() || child.key.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
      problems.add(child.key_position,
                   "env: " + in_quotes(child.key) + " cannot be a name: it is empty or holds '=' or NUL");
      continue;
    }
    const auto value = read_text(child, "env[" + in_quotes(child.key) + "]", problems);
    if (value) task.env[child.key] = *value;
  }
}

void read_inputs(const YamlNode& node, TaskSpec& task, Problems& problems) {
  if (!check_sequence(node, "inputs", problems)) return;
  for (const YamlNode& child : node.children) {
    const MappingReader input(child, "inputs[" + std::to_string(&child - node.children.data()) + "]",
                              {"source", "target"}, problems);
    const YamlNode* source = input.require("source");
    const YamlNode* target = input.require("target");
    if (source == nullptr || target == nullptr) continue;
    const auto source_text = read_nonempty_text(*source, input.path_of("source"), problems);
    const auto target_text = read_nonempty_text(*target, input.path_of("target"), problems);
    for (const auto& [key, node_of] : {std::pair{"source", source}, {"target", target}})
      task.places[input.path_of(key)] = problems.source().where(node_of->position);
    if (source_text && target_text) task.inputs.push_back({.source = *source_text, .target = *target_text});
  }
}

void read_limits(const YamlNode& node, TaskSpec& task, Problems& problems) {
  const MappingReader limits(node, "limits", limit_names(), problems);
  for (const LimitField& field : kLimitFields) {
    const YamlNode* bound = limits.find(field.name);
    if (bound == nullptr) continue;
    const auto quantity = read_quantity(*bound, limits.path_of(field.name), field.unit, problems);
    if (!quantity) continue;
    task.limits[std::string(field.name)] = AskedBound{.usable = quantity->usable,
                                                      .value = quantity->value,
                                                      .text = bound->text,
                                                      .where = problems.source().where(bound->position)};
  }
}

void note_places(const MappingReader& reader, TaskSpec& task, const Problems& problems) {
  for (const char* key : {"profile", "rootfs", "image", "stdin", "output", "workdir"})
    if (const YamlNode* node = reader.find(key)) task.places[key] = problems.source().where(node->position);
}

// A text into its place, when the key is there and the text is good.
template <class Target>
void read_path(const MappingReader& reader, std::string_view key, Target& target, Problems& problems) {
  const YamlNode* node = reader.find(key);
  if (node == nullptr) return;
  const auto text = read_nonempty_text(*node, std::string(key), problems);
  if (text) target = *text;
}

// Exactly one of rootfs and image.
void read_root(const YamlNode& root, const MappingReader& reader, TaskSpec& task, Problems& problems) {
  const YamlNode *rootfs = reader.find("rootfs"), *image = reader.find("image");
  if (rootfs == nullptr && image == nullptr) {
    problems.add(root.position, "key \"rootfs\" or \"image\" is missing");
    return;
  }
  if (rootfs != nullptr && image != nullptr)
    problems.add(image->key_position, "image: a task has a rootfs or an image, not both");
  if (rootfs != nullptr) read_path(reader, "rootfs", task.rootfs, problems);
  if (image == nullptr) return;
  const auto text = read_nonempty_text(*image, "image", problems);
  if (!text) return;
  auto parsed = parse_image_ref(*text);
  if (parsed)
    task.image = std::move(*parsed);
  else
    problems.add(image->position, "image: " + parsed.message());
}

void read_task(const YamlNode& root, TaskSpec& task, Problems& problems) {
  if (!read_format_version(root, "benchsand", problems)) return;
  const MappingReader reader(root, "", task_keys(), problems);
  refuse_later_keys(reader, problems);
  note_places(reader, task, problems);
  if (const YamlNode* name = reader.require("name")) {
    const auto text = read_name(*name, "name", problems);
    if (text) task.name = *text;
  }
  // A name and not a path: a task chooses among the house's profiles, it does not bring its own.
  if (const YamlNode* profile = reader.find("profile")) task.profile = read_name(*profile, "profile", problems);
  read_root(root, reader, task, problems);
  const YamlNode* command = task.image ? reader.find("command") : reader.require("command");
  if (command != nullptr) read_command(*command, task, problems);
  if (const YamlNode* env = reader.find("env")) read_env(*env, task, problems);
  read_path(reader, "workdir", task.workdir, problems);
  read_path(reader, "stdin", task.stdin_file, problems);
  if (const YamlNode* inputs = reader.find("inputs")) read_inputs(*inputs, task, problems);
  read_path(reader, "output", task.output, problems);
  if (const YamlNode* limits = reader.find("limits")) read_limits(*limits, task, problems);
}

}  // namespace

Result<TaskSpec> parse_task_spec(const std::string& text, const std::string& name) {
  const YamlSource source(name, text);
  const YamlNode root = TRY(parse_yaml(source));
  Problems problems(source);
  TaskSpec task;
  read_task(root, task, problems);
  if (task.image && task.command.empty() && problems.none()) {
    problems.add(root.position, "key \"command\" is missing");
    task.command_missing = problems.report().error().message;
    return task;
  }
  if (!problems.none()) return problems.report();
  return task;
}

Result<void> apply_setting(TaskSpec& task, const Setting& setting) {
  constexpr std::string_view kPrefix = "limits.";
  const std::string where = "--set " + setting.key;
  if (!setting.key.starts_with(kPrefix)) return usage(where + ": only limits.* can be set");
  const std::string name = setting.key.substr(kPrefix.size());
  const auto field = std::find_if(kLimitFields.begin(), kLimitFields.end(),
                                  [&](const LimitField& candidate) { return candidate.name == name; });
  if (field == kLimitFields.end()) {
    return usage(where + ": unknown limit " + in_quotes(name) + did_you_mean(name, limit_names()));
  }
  const auto quantity = parse_quantity(setting.value, field->unit);
  if (!quantity) return usage(where + ": " + quantity.message());
  task.limits[name] =
      AskedBound{.usable = quantity->usable, .value = quantity->value, .text = setting.value, .where = where};
  return {};
}

}  // namespace benchsand
