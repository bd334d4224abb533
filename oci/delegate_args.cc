#include "oci/runtime_args.h"
#include "oci/runtime_flags.h"

namespace benchsand {

namespace {

// As the table has them: the same call always gives the same words.
void add_flags(const RuntimeCall& call, VerbSet verb, const std::string& delegate, std::vector<std::string>& words) {
  for (const auto& row : runtime_flags()) {
    if (!(row.verbs & verb) || (row.delegate && row.delegate != delegate)) continue;
    const std::string name = std::string("--") + row.name;
    const auto add = [&](const std::string& value) {
      words.push_back(name);
      words.push_back(value);
    };
    if (const auto* flag = std::get_if<BoolField>(&row.field); flag && call.**flag) words.push_back(name);
    if (const auto* text = std::get_if<TextField>(&row.field); text && !(call.**text).empty()) {
      if (takes_value(row))
        add(call.**text);
      else if (call.**text == "true")
        words.push_back(name);
    }
    if (const auto* list = std::get_if<ListField>(&row.field))
      for (const auto& value : call.**list) add(value);
    if (const auto* map = std::get_if<MapField>(&row.field); map && (call.**map).contains(row.name))
      add((call.**map).at(row.name));
    if (const auto* in_map = std::get_if<SwitchField>(&row.field); in_map && (call.*in_map->map).contains(row.name))
      words.push_back(name);
  }
}

std::vector<std::string> words_of(const RuntimeCall& call, const std::string& delegate) {
  std::vector<std::string> words;
  add_flags(call, kBeforeVerb, delegate, words);
  words.push_back(runtime_verb_text(call.verb));
  if (call.verb == RuntimeVerb::version || call.verb == RuntimeVerb::help) return words;
  if (call.help) {
    words.push_back("--help");
    return words;
  }
  add_flags(call, only(call.verb), delegate, words);
  if (!call.id.empty()) words.push_back(call.id);
  if (!call.signal.empty()) words.push_back(call.signal);
  words.insert(words.end(), call.command.begin(), call.command.end());
  return words;
}

void say_nothing_beside_the_file(RuntimeCall& exec) {
  exec.command.clear();
  exec.environment.clear();
  exec.capabilities.clear();
  exec.groups.clear();
  exec.cwd.clear();
  exec.user.clear();
  exec.process_label.clear();
  exec.apparmor.clear();
  exec.tty = exec.no_new_privileges = false;
}

}  // namespace

std::vector<std::string> delegate_arguments(const RuntimeCall& call, const DelegatePlaces& places) {
  RuntimeCall handed = call;
  handed.root = places.root;
  handed.log = places.log;
  handed.log_format = places.log.empty() ? "" : "json";
  // benchsand's cgroups are its own, so no manager is asked; and root is root.
  handed.systemd_cgroup = handed.debug = false;
  handed.cgroup_manager = places.delegate == "crun" ? "cgroupfs" : "";
  handed.criu.clear();
  handed.rootless.clear();
  handed.id = places.id;
  handed.bundle = places.bundle;
  handed.pid_file = places.pid_file;
  handed.console_socket = places.console_socket;
  handed.pidfd_socket.clear();
  handed.process_file = places.process_file;
  handed.resources_file = places.resources_file;
  if (!places.process_file.empty()) say_nothing_beside_the_file(handed);
  if (!places.resources_file.empty()) handed.limits.clear();
  // Refused at parsing; and once more here, where they would count.
  handed.config.clear();
  handed.preserve_fds.clear();
  handed.cgroup.clear();
  handed.no_pivot = handed.regex = false;
  // A shared session keyring would be a channel to whoever called.
  handed.no_new_keyring = false;
  return words_of(handed, places.delegate);
}

std::vector<std::string> passthrough_arguments(const RuntimeCall& call, const std::string& delegate) {
  return words_of(call, delegate);
}

}  // namespace benchsand
