// What the run's cgroup says: which kernel file is the authority for which observation, on v1 and v2.
#include <fcntl.h>

#include <cerrno>

#include "oci/walls.h"
#include "shim/host_cgroup.h"

namespace benchsand {

const RunCgroup::Place* RunCgroup::place(const std::string& controller) const {
  for (const bool on_v2 : {false, true})
    for (const auto& candidate : places_)
      if (candidate.hierarchy->unified == on_v2 && candidate.hierarchy->controllers.contains(controller))
        return &candidate;
  return nullptr;
}

const RunCgroup::Place& RunCgroup::unified() const {
  for (const auto& candidate : places_)
    if (candidate.hierarchy->unified) return candidate;
  return places_.front();  // CgroupHost::find refuses a host without one
}

std::string RunCgroup::name(const Place& place, const std::string& file) const {
  return place.hierarchy->mount + (place.leaf ? leaf_path() : outer_path()) + "/" + file;
}

std::string RunCgroup::bpf_name() const {
  return name(unified(), "");
}

Result<std::string> RunCgroup::read(const Place& place, const std::string& file) const {
  if (!place.leaf) return fault("read " + file + ": the leaf cgroup is not open");
  return sys::read_file(place.leaf.get(), file);
}

bool RunCgroup::has_swap_file() const {
  const auto found = sys::exists(unified().outer.get(), "memory.swap.max");
  return found && *found;
}

namespace {

// Where the process stands in one hierarchy. Hierarchies that are not mounted here hold none of our limits.
std::string path_in(const Hierarchy& hierarchy, const std::vector<CgroupMembership>& memberships) {
  for (const auto& membership : memberships) {
    if (hierarchy.unified && membership.hierarchy == 0) return membership.path;
    for (const auto& controller : membership.controllers)
      if (!hierarchy.unified && hierarchy.controllers.contains(controller)) return membership.path;
  }
  return "not in " + hierarchy.mount;
}

}  // namespace

Result<void> RunCgroup::open_leaf(const std::string& text, const std::string& source, Evidence& evidence) {
  evidence.set("evidence.cgroup_made", leaf_path(), "mkdir");
  const auto memberships = TRY(parse_cgroup_membership(text, source));
  std::set<std::string> paths;  // one, when all is as asked
  for (const auto& candidate : places_) paths.insert(path_in(*candidate.hierarchy, memberships));
  std::string seen;
  for (const auto& path : paths) seen += (seen.empty() ? "" : " ") + path;
  evidence.set("evidence.cgroup_path", seen, source);
  for (auto& candidate : places_) candidate.leaf = TRY(sys::open_directory(candidate.outer.get(), leaf_));
  cpu_stat_ = TRY(sys::openat(unified().leaf.get(), "cpu.stat", O_RDONLY));
  return {};
}

Result<std::uint64_t> RunCgroup::cpu_usage_us() const {
  const std::string source = name(unified(), "cpu.stat");
  return TRY(parse_keyed(TRY(sys::reread(cpu_stat_, source)), source, {"usage_usec"})).at("usage_usec");
}

Result<std::uint64_t> RunCgroup::processes() const {
  const std::string text = TRY(read(unified(), "cgroup.procs"));
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

Result<std::uint64_t> Meter::read() const {
  return parse_counter(TRY(sys::reread(file, name)), name);
}

Result<Meter> RunCgroup::meter(const std::string& controller, const std::string& v1_file,
                               const std::string& v2_file) const {
  const Place* from = place(controller);
  if (!from || !from->leaf) return fault("read the " + controller + " controller: its leaf cgroup is not open");
  const std::string& file = from->hierarchy->unified ? v2_file : v1_file;
  return Meter{TRY(sys::openat(from->leaf.get(), file, O_RDONLY)), name(*from, file)};
}

Result<std::set<pid_t>> RunCgroup::tasks() const {
  std::set<pid_t> found;
  for (const auto& candidate : places_) {
    const std::string file = candidate.hierarchy->unified ? "cgroup.threads" : "tasks";
    const std::string text = TRY(read(candidate, file));
    for (const auto task : TRY(parse_numbers(text, name(candidate, file)))) found.insert(static_cast<pid_t>(task));
  }
  return found;
}

void RunCgroup::take_counter(Evidence& evidence, const std::string& key, const std::string& controller,
                             const std::string& file, bool optional) const {
  const Place* from = place(controller);
  if (!from) return evidence.missing(key, "no " + controller + " controller", file);
  const auto text = read(*from, file);
  const std::string source = name(*from, file);
  if (!text && optional && text.error().error_number == ENOENT)
    return evidence.set(key, std::string(kNotInThisKernel), source);
  if (!text) return evidence.missing(key, text.error().message, source);
  evidence.take(key, parse_counter(*text, source), source);
}

void RunCgroup::take_limit(Evidence& evidence, const std::string& key, const std::string& controller,
                           const std::string& file) const {
  const Place* from = place(controller);
  if (!from) return evidence.missing(key, "no " + controller + " controller", file);
  const std::string source = name(*from, file);
  const auto text = read(*from, file);
  if (!text) return evidence.missing(key, text.error().message, source);
  const auto limit = parse_limit(*text, source);
  if (!limit) return evidence.missing(key, limit.error().message, source);
  evidence.set(key, *limit ? Value(**limit) : Value(std::string("max")), source);
}

void RunCgroup::take_keyed(Evidence& evidence, const std::string& key, const std::string& controller,
                           const std::string& file, const std::string& counter) const {
  const Place* from = place(controller);
  if (!from) return evidence.missing(key, "no " + controller + " controller", file);
  const std::string source = name(*from, file);
  const auto text = read(*from, file);
  if (!text) return evidence.missing(key, text.error().message, source);
  const auto counters = parse_keyed(*text, source, {counter});
  if (!counters) return evidence.missing(key, counters.error().message, source);
  evidence.set(key, counters->at(counter), source + " " + counter);
}

namespace {

// Thousandths of a processor; text when there is no quota.
Value cpus_of(const std::optional<std::uint64_t>& quota, std::uint64_t period) {
  if (!quota || period == 0) return std::string("max");
  return *quota * 1000 / period;
}

}  // namespace

void RunCgroup::observe_v2_limits(Evidence& evidence, const std::string& suffix) const {
  take_limit(evidence, "memory.limit" + suffix, "memory", "memory.max");
  take_limit(evidence, "memory.swap" + suffix, "memory", "memory.swap.max");
  take_counter(evidence, "memory.oom_group" + suffix, "memory", "memory.oom.group", false);
  const std::string source = name(unified(), "cpu.max");
  const auto text = read(unified(), "cpu.max");
  const auto quota = text ? parse_cpu_max(*text, source) : Result<CpuMax>(std::unexpected(text.error()));
  if (quota)
    evidence.set("cpu-time.cpus_milli" + suffix, cpus_of(quota->quota_us, quota->period_us), source);
  else
    evidence.missing("cpu-time.cpus_milli" + suffix, quota.error().message, source);
}

void RunCgroup::observe_v1_limits(Evidence& evidence, const std::string& suffix) const {
  take_counter(evidence, "memory.limit" + suffix, "memory", "memory.limit_in_bytes", false);
  take_counter(evidence, "memory.swap" + suffix, "memory", "memory.memsw.limit_in_bytes", false);
  const Place* cpu = place("cpu");
  if (!cpu) return evidence.missing("cpu-time.cpus_milli" + suffix, "no cpu controller", "cpu.cfs_quota_us");
  const std::string source = name(*cpu, "cpu.cfs_quota_us");
  const auto observe = [&]() -> Result<Value> {
    const auto quota = TRY(parse_cfs_quota(TRY(read(*cpu, "cpu.cfs_quota_us")), source));
    const auto period = TRY(parse_counter(TRY(read(*cpu, "cpu.cfs_period_us")), name(*cpu, "cpu.cfs_period_us")));
    return cpus_of(quota, period);
  };
  evidence.take("cpu-time.cpus_milli" + suffix, observe(), source);
}

// Those that the kernel lets the run use, which is never more than what was asked for and can be less.
void RunCgroup::take_cpuset(Evidence& evidence, const std::string& suffix) const {
  const std::string key = "cpu-time.cpuset" + suffix;
  const Place* from = place("cpuset");
  const std::string file = from && !from->hierarchy->unified ? "cpuset.effective_cpus" : "cpuset.cpus.effective";
  if (!from) return evidence.set(key, std::string(kNoCpuset), file);
  const auto text = read(*from, file);
  // v2: the controller is there, but was not handed down to this run.
  if (!text && text.error().error_number == ENOENT) return evidence.set(key, std::string(kNoCpuset), name(*from, file));
  if (!text) return evidence.missing(key, text.error().message, name(*from, file));
  evidence.set(key, text->substr(0, text->find('\n')), name(*from, file));
}

namespace {

// Since Linux 6.10 the v1 counter only runs where somebody has set a throttle; then it is 0 for the whole host, which has
// written something since it booted, and a 0 here would mean nothing.
Result<bool> v1_counts_writes(const Hierarchy& hierarchy, const std::string& file) {
  const auto text = TRY(sys::read_file(hierarchy.root.get(), file));
  return TRY(parse_blkio_writes(text, hierarchy.mount + "/" + file)) > 0;
}

}  // namespace

void RunCgroup::take_device_writes(Evidence& evidence, const std::string& suffix) const {
  const std::string key = "output.device_writes" + suffix;
  const Place* v1 = place("blkio");
  const Place* from = v1 ? v1 : place("io");
  const std::string file = v1 ? "blkio.throttle.io_service_bytes" : "io.stat";
  if (!from) return evidence.set(key, std::string(kNotOnThisHost), file);
  const std::string source = name(*from, file);
  const auto text = read(*from, file);
  const auto counts = v1 && text ? v1_counts_writes(*v1->hierarchy, file) : Result<bool>(true);
  if (!counts) return evidence.missing(key, counts.error().message, source);
  if (!*counts || (!text && text.error().error_number == ENOENT))
    return evidence.set(key, std::string(kNotOnThisHost), source);
  if (!text) return evidence.missing(key, text.error().message, source);
  evidence.take(key, v1 ? parse_blkio_writes(*text, source) : parse_io_stat_writes(*text, source), source);
}

// v1 counts in nanoseconds.
void RunCgroup::take_throttling(Evidence& evidence) const {
  const bool v2 = layout_ == CgroupLayout::v2;
  const Place* from = place("cpu");
  const std::string source = from ? name(*from, "cpu.stat") : "cpu.stat",
                    time = v2 ? "throttled_usec" : "throttled_time";
  const auto read_counters = [&]() -> Result<KeyedCounters> {
    if (!from) return fault("no cpu controller");
    return parse_keyed(TRY(read(*from, "cpu.stat")), source, {"nr_throttled", time});
  };
  const auto counters = read_counters();
  if (!counters) {
    evidence.missing("cpu-time.throttled_periods", counters.error().message, source);
    return evidence.missing("cpu-time.throttled_us", counters.error().message, source);
  }
  evidence.set("cpu-time.throttled_periods", counters->at("nr_throttled"), source + " nr_throttled");
  evidence.set("cpu-time.throttled_us", counters->at(time) / (v2 ? 1 : 1000), source + " " + time);
}

void RunCgroup::observe_alone(Evidence& evidence) const {
  evidence.take("processes.at_door", processes(), name(unified(), "cgroup.procs"));
  take_counter(evidence, "processes.peak_at_door", "pids", "pids.peak", true);
}

void RunCgroup::observe_limits(Evidence& evidence, const std::string& suffix) const {
  if (layout_ == CgroupLayout::v2)
    observe_v2_limits(evidence, suffix);
  else
    observe_v1_limits(evidence, suffix);
  take_limit(evidence, "processes.limit" + suffix, "pids", "pids.max");
  take_cpuset(evidence, suffix);
  take_device_writes(evidence, suffix);
  const auto usage = cpu_usage_us();
  evidence.take("cpu-time.usage_us" + suffix, usage, name(unified(), "cpu.stat") + " usage_usec");
  // By name below the outer cgroup that we made, not through the descriptor: another cgroup under the same name must show.
  const auto identity = sys::fstatat(unified().outer.get(), leaf_, AT_SYMLINK_NOFOLLOW);
  const std::string source = name(unified(), "") + " st_ino";
  if (identity)
    evidence.set("evidence.cgroup_id" + suffix, static_cast<std::uint64_t>(identity->st_ino), source);
  else
    evidence.missing("evidence.cgroup_id" + suffix, identity.error().message, source);
}

void RunCgroup::observe_spent(Evidence& evidence) const {
  if (layout_ == CgroupLayout::v2) {
    take_counter(evidence, "memory.peak", "memory", "memory.peak", true);
    take_counter(evidence, "memory.swap_peak", "memory", "memory.swap.peak", true);
    take_keyed(evidence, "memory.oom_kills", "memory", "memory.events", "oom_kill");
  } else {
    take_counter(evidence, "memory.peak", "memory", "memory.max_usage_in_bytes", false);
    take_counter(evidence, "memory.swap_peak", "memory", "memory.memsw.max_usage_in_bytes", false);
    take_keyed(evidence, "memory.oom_kills", "memory", "memory.oom_control", "oom_kill");
  }
  take_counter(evidence, "processes.peak", "pids", "pids.peak", true);
  take_keyed(evidence, "processes.refused", "pids", "pids.events", "max");
  take_throttling(evidence);
}

void RunCgroup::observe_empty(Evidence& evidence) const {
  const std::string source = name(unified(), "cgroup.events");
  const auto text = read(unified(), "cgroup.events");
  // An engine that has removed it cannot have done so while anything was in it.
  if (is_engines_ && !text && (text.error().error_number == ENOENT || text.error().error_number == ENODEV)) {
    evidence.set("teardown.populated", std::uint64_t{0}, source + ": removed");
    return evidence.set("teardown.processes_left", std::uint64_t{0}, source + ": removed");
  }
  const auto events =
      text ? parse_keyed(*text, source, {"populated"}) : Result<KeyedCounters>(std::unexpected(text.error()));
  if (events)
    evidence.set("teardown.populated", events->at("populated"), source);
  else
    evidence.missing("teardown.populated", events.error().message, source);

  std::uint64_t left = 0;
  for (const auto& candidate : places_) {
    const auto members = read(candidate, "cgroup.procs");
    if (!members)
      return evidence.missing("teardown.processes_left", members.error().message, name(candidate, "cgroup.procs"));
    left += static_cast<std::uint64_t>(std::count(members->begin(), members->end(), '\n'));
  }
  evidence.set("teardown.processes_left", left, "cgroup.procs of every hierarchy");
}

}  // namespace benchsand
