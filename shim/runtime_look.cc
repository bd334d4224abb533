// The verbs that only look.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "oci/kernel_files.h"
#include "oci/runtime_documents.h"
#include "oci/runtime_error.h"
#include "oci/units.h"
#include "shim/container_cgroup.h"
#include "shim/run_folder.h"
#include "shim/runtime_verbs.h"

namespace benchsand {

namespace {

void say(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string json_text(const nlohmann::json& document, int indent) {
  return document.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<nlohmann::json> state_json(const ContainerState& state) {
  const auto status = TRY(container_status(state));
  return nlohmann::json{{"ociVersion", state.oci_version},
                        {"id", state.id},
                        {"status", container_status_text(status)},
                        {"pid", status == ContainerStatus::stopped ? 0 : state.pid},
                        {"bundle", state.bundle},
                        {"rootfs", state.rootfs},
                        {"created", state.created},
                        {"annotations", state.annotations},
                        {"owner", ""}};
}

std::string column(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

std::string table_of(const nlohmann::json& states) {
  const auto line = [](const std::string& id, const std::string& pid, const std::string& status,
                       const std::string& bundle, const std::string& created) {
    return column(id, 28) + column(pid, 12) + column(status, 12) + column(bundle, 40) + created + "\n";
  };
  std::string table = line("ID", "PID", "STATUS", "BUNDLE", "CREATED");
  for (const auto& state : states)
    table += line(state.at("id"), std::to_string(state.at("pid").get<pid_t>()), state.at("status"), state.at("bundle"),
                  state.at("created"));
  return table;
}

Result<ContainerCgroup> cgroup_of_running(const ContainerState& state) {
  if (TRY(container_status(state)) == ContainerStatus::stopped) return usage(container_not_running(state.id));
  return ContainerCgroup::open(state.run_id);
}

}  // namespace

Result<int> verb_state(const RuntimeContext&, const RuntimeCall& call) {
  say(json_text(TRY(state_json(TRY(require_container(call.root, call.id)))), 2));
  return 0;
}

Result<int> verb_list(const RuntimeContext&, const RuntimeCall& call) {
  nlohmann::json states = nlohmann::json::array();
  for (const auto& state : TRY(list_containers(call.root))) states.push_back(TRY(state_json(state)));
  std::sort(states.begin(), states.end(), [](const auto& a, const auto& b) { return a.at("id") < b.at("id"); });
  if (call.quiet)
    for (const auto& state : states) say(state.at("id").get<std::string>() + "\n");
  else
    say(call.format == "json" ? json_text(states, -1) : table_of(states));
  return 0;
}

// The table has the numbers alone: what a process calls itself is the candidate's word.
Result<int> verb_ps(const RuntimeContext&, const RuntimeCall& call) {
  if (!call.command.empty()) return usage("list the processes: options of ps are not handed on");
  const auto cgroup = TRY(cgroup_of_running(TRY(require_container(call.root, call.id))));
  const auto processes = TRY(cgroup.processes());
  if (call.format == "json") {
    say(json_text(processes, -1));
    return 0;
  }
  say("PID\n");
  for (const pid_t pid : processes) say(std::to_string(pid) + "\n");
  return 0;
}

namespace {

// Files differ between v1 and v2 by name and form.
Result<ContainerStats> read_stats(const ContainerCgroup& cgroup) {
  const bool v2 = cgroup.layout() == CgroupLayout::v2;
  const auto number = [&](const char* controller, const char* v1_file,
                          const char* v2_file) -> Result<std::optional<std::uint64_t>> {
    const char* file = v2 ? v2_file : v1_file;
    return parse_limit(TRY(cgroup.read(controller, file)), cgroup.name(controller, file));
  };
  // `max` is shown as runc shows it.
  const auto or_largest = [](const std::optional<std::uint64_t>& limit) { return limit ? *limit : UINT64_MAX; };
  ContainerStats stats;
  const auto cpu = TRY(parse_keyed(TRY(cgroup.read("", "cpu.stat")), cgroup.name("", "cpu.stat"),
                                   {"usage_usec", "user_usec", "system_usec"}));
  stats.cpu_us = cpu.at("usage_usec");
  stats.user_us = cpu.at("user_usec");
  stats.system_us = cpu.at("system_usec");
  const auto throttling = TRY(
      parse_keyed(TRY(cgroup.read("cpu", "cpu.stat")), cgroup.name("cpu", "cpu.stat"), {"nr_periods", "nr_throttled"}));
  stats.periods = throttling.at("nr_periods");
  stats.throttled_periods = throttling.at("nr_throttled");
  if (const auto us = throttling.find("throttled_usec"); us != throttling.end()) stats.throttled_us = us->second;
  if (const auto ns = throttling.find("throttled_time"); ns != throttling.end()) stats.throttled_us = ns->second / 1000;
  stats.memory = or_largest(TRY(number("memory", "memory.usage_in_bytes", "memory.current")));
  stats.memory_limit = or_largest(TRY(number("memory", "memory.limit_in_bytes", "memory.max")));
  // memory.peak is there since Linux 5.19.
  if (const auto peak = number("memory", "memory.max_usage_in_bytes", "memory.peak"); peak && *peak)
    stats.memory_peak = **peak;
  if (v2)
    stats.memory_refused =
        TRY(parse_keyed(TRY(cgroup.read("memory", "memory.events")), cgroup.name("memory", "memory.events"), {"max"}))
            .at("max");
  else
    stats.memory_refused = or_largest(TRY(number("memory", "memory.failcnt", "")));
  stats.pids = or_largest(TRY(number("pids", "pids.current", "pids.current")));
  stats.pids_limit = or_largest(TRY(number("pids", "pids.max", "pids.max")));
  return stats;
}

}  // namespace

Result<int> verb_events(const RuntimeContext&, const RuntimeCall& call) {
  const auto interval = TRY(parse_quantity(call.interval.empty() ? "5s" : call.interval, Unit::duration_us));
  if (!interval.usable) return usage("read the events: --interval " + call.interval + " is not a time above 0");
  const auto state = TRY(require_container(call.root, call.id));
  const auto cgroup = TRY(cgroup_of_running(state));
  for (;;) {
    const auto stats = read_stats(cgroup);
    if (!stats && TRY(container_status(state)) == ContainerStatus::stopped) return 0;  // it ended meanwhile
    if (!stats) return std::unexpected(stats.error());
    say(json_text(stats_json(call.id, *stats), -1));
    if (call.stats) return 0;
    ::usleep(static_cast<useconds_t>(std::min<std::uint64_t>(interval.value, 3600'000'000)));
    if (TRY(container_status(state)) == ContainerStatus::stopped) return 0;
  }
}

// Read by callers together with stderr: nothing may stand beside the JSON.
Result<int> verb_features(const RuntimeContext& context, const RuntimeCall&) {
  const auto profile = TRY(runtime_profile(context));
  DelegateFacts delegate;
  if (::geteuid() == 0 && make_base_folders())
    if (const auto name = choose_delegate())
      if (auto binary = find_delegate(*name, kDelegateCache)) delegate = binary->facts;
  say(json_text(features_json(context.profile, profile.sha256, delegate), 2));
  return 0;
}

Result<int> verb_spec(const RuntimeContext&, const RuntimeCall& call) {
  const std::string path = call.file.empty() ? call.bundle + "/config.json" : call.file;
  TRY_VOID(sys::create_file(sys::kHere, path, json_text(example_config_json(), 2), 0644));
  return 0;
}

// dockerd takes the last line with the word "version" in it and splits there; go-runc wants "runc version " and takes anything
// else for an unnamed one without an error; Podman and CRI-O show the text. So the word stands in one line, and the name is true.
std::string version_text() {
  return std::string("benchsand version ") + BENCHSAND_VERSION + "\nspec: 1.0.2\n";
}

}  // namespace benchsand
