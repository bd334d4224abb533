#include "oci/runtime_flags.h"

#include <algorithm>

namespace benchsand {

namespace {

using V = RuntimeVerb;
using C = RuntimeCall;

constexpr VerbRow kVerbs[] = {
    {V::create, "create", true, nullptr, "make a container from a bundle, behind the walls of the profile"},
    {V::start, "start", true, nullptr, "let it run, if every wall was observed to stand"},
    {V::run, "run", true, nullptr, "create and start"},
    {V::state, "state", true, nullptr, "its state as JSON"},
    {V::kill, "kill", true, "[SIGNAL]", "send a signal to its first process (default TERM)"},
    {V::remove, "delete", true, nullptr, "take away what is left of it"},
    {V::exec, "exec", true, "COMMAND…", "one more process inside, behind the same walls"},
    {V::ps, "ps", true, "[OPTIONS]", "its processes, by the host's numbers"},
    {V::update, "update", true, nullptr, "make its limits tighter"},
    {V::pause, "pause", true, nullptr, "stop every process in it"},
    {V::resume, "resume", true, nullptr, "let them go on"},
    {V::checkpoint, "checkpoint", true, nullptr, "refused"},
    {V::restore, "restore", true, nullptr, "refused"},
    {V::events, "events", true, nullptr, "what it uses, as JSON"},
    {V::list, "list", false, nullptr, "the containers of this root"},
    {V::spec, "spec", false, nullptr, "write an example of a config.json"},
    {V::features, "features", false, nullptr, "what this runtime can do, as JSON"},
};

constexpr VerbSet kMakes = only(V::create) | only(V::run);
constexpr VerbSet kImages = only(V::checkpoint) | only(V::restore);

constexpr FlagRow kFlags[] = {
    {"root", nullptr, kBeforeVerb, &C::root, "DIR", nullptr, "which containers are meant: those made with this root"},
    {"log", nullptr, kBeforeVerb, &C::log, "FILE", nullptr, "append errors to this file"},
    {"log-format", nullptr, kBeforeVerb, &C::log_format, "FORMAT", nullptr, "text or json"},
    {"debug", nullptr, kBeforeVerb, &C::debug, nullptr, nullptr, "accepted and ignored"},
    {"systemd-cgroup", nullptr, kBeforeVerb, &C::systemd_cgroup, nullptr, nullptr,
     "accepted: benchsand's cgroups are its own"},
    {"rootless", nullptr, kBeforeVerb, &C::rootless, "true|false|auto", nullptr, "accepted: benchsand must be root"},
    {"criu", nullptr, kBeforeVerb, &C::criu, "PATH", "runc", "accepted and ignored"},
    {"cgroup-manager", nullptr, kBeforeVerb, &C::cgroup_manager, "NAME", "crun",
     "accepted: benchsand's cgroups are its own"},

    {"bundle", "b", kMakes | only(V::spec) | only(V::restore), &C::bundle, "DIR", nullptr,
     "where config.json is (default: here)"},
    {"config", "f", kMakes, &C::config, "FILE", nullptr, "refused"},
    {"pid-file", nullptr, kMakes | only(V::exec) | only(V::restore), &C::pid_file, "FILE", nullptr,
     "where to write the number of the first process"},
    {"console-socket", nullptr, kMakes | only(V::exec) | only(V::restore), &C::console_socket, "SOCKET", nullptr,
     "who receives the terminal"},
    {"pidfd-socket", nullptr, kMakes | only(V::exec), &C::pidfd_socket, "SOCKET", nullptr,
     "who receives a pidfd of the first process"},
    {"no-pivot", nullptr, kMakes | only(V::restore), &C::no_pivot, nullptr, nullptr, "refused"},
    {"no-new-keyring", nullptr, kMakes, &C::no_new_keyring, nullptr, nullptr,
     "accepted: the container has a keyring of its own"},
    {"no-subreaper", nullptr, kMakes | only(V::restore), &C::no_subreaper, nullptr, nullptr, "accepted"},
    {"preserve-fds", nullptr, kMakes | only(V::exec), &C::preserve_fds, "N", nullptr, "refused when above 0"},
    {"detach", "d", only(V::run) | only(V::exec) | only(V::restore), &C::detach, nullptr, nullptr,
     "do not wait for its end"},
    {"keep", nullptr, only(V::run), &C::keep, nullptr, nullptr, "do not delete it at its end"},

    {"process", "p", only(V::exec), &C::process_file, "FILE", nullptr, "the process as JSON"},
    {"cwd", nullptr, only(V::exec), &C::cwd, "DIR", nullptr, "working directory"},
    {"env", "e", only(V::exec), &C::environment, "NAME=VALUE", nullptr, "a variable"},
    {"tty", "t", only(V::exec), &C::tty, nullptr, nullptr, "with a terminal"},
    {"user", "u", only(V::exec), &C::user, "UID[:GID]", nullptr, "who runs it"},
    {"additional-gids", "g", only(V::exec), &C::groups, "GID", nullptr, "one more group"},
    {"cap", "c", only(V::exec), &C::capabilities, "CAP", nullptr, "a capability"},
    {"process-label", nullptr, only(V::exec), &C::process_label, "LABEL", nullptr, "SELinux label"},
    {"apparmor", nullptr, only(V::exec), &C::apparmor, "PROFILE", nullptr, "AppArmor profile"},
    {"no-new-privs", nullptr, only(V::exec), &C::no_new_privileges, nullptr, nullptr, "always so with benchsand"},
    {"cgroup", nullptr, only(V::exec), &C::cgroup, "PATH", nullptr, "a cgroup below the container's"},
    {"ignore-paused", nullptr, only(V::exec), &C::ignore_paused, nullptr, nullptr, "also when it is paused"},

    {"all", "a", only(V::kill), &C::all, nullptr, nullptr, "to every process"},
    {"force", "f", only(V::remove), &C::force, nullptr, nullptr, "also when it runs: kill it first"},
    {"regex", "r", only(V::kill) | only(V::remove), &C::regex, nullptr, nullptr, "refused"},
    {"format", "f", only(V::ps) | only(V::list), &C::format, "FORMAT", nullptr, "table or json"},
    {"quiet", "q", only(V::list), &C::quiet, nullptr, nullptr, "only the ids"},
    {"stats", nullptr, only(V::events), &C::stats, nullptr, nullptr, "once, and then end"},
    {"interval", nullptr, only(V::events), &C::interval, "TIME", nullptr, "time between two looks (default 5s)"},
    {"file", "f", only(V::spec), &C::file, "FILE", nullptr, "where to write it"},
    {"rootless", nullptr, only(V::spec), &C::rootless, nullptr, nullptr, "accepted and ignored"},

    {"resources", "r", only(V::update), &C::resources_file, "FILE", nullptr, "limits as JSON; - is standard input"},
    {"memory", nullptr, only(V::update), &C::limits, "BYTES", nullptr, "memory"},
    {"memory-swap", nullptr, only(V::update), &C::limits, "BYTES", nullptr, "memory and swap together"},
    {"memory-reservation", nullptr, only(V::update), &C::limits, "BYTES", nullptr, "memory, soft"},
    {"kernel-memory", nullptr, only(V::update), &C::limits, "BYTES", nullptr, "kernel memory"},
    {"kernel-memory-tcp", nullptr, only(V::update), &C::limits, "BYTES", nullptr, "kernel memory of TCP"},
    {"pids-limit", nullptr, only(V::update), &C::limits, "N", nullptr, "tasks"},
    {"cpu-quota", nullptr, only(V::update), &C::limits, "US", nullptr, "CPU time in each period"},
    {"cpu-period", nullptr, only(V::update), &C::limits, "US", nullptr, "the period"},
    {"cpu-share", nullptr, only(V::update), &C::limits, "N", nullptr, "CPU weight"},
    {"cpu-rt-period", nullptr, only(V::update), &C::limits, "US", nullptr, "period of real-time tasks"},
    {"cpu-rt-runtime", nullptr, only(V::update), &C::limits, "US", nullptr, "CPU time of real-time tasks"},
    {"cpu-idle", nullptr, only(V::update), &C::limits, "0|1", nullptr, "idle class"},
    {"cpu-burst", nullptr, only(V::update), &C::limits, "US", nullptr, "saved-up CPU time"},
    {"cpuset-cpus", nullptr, only(V::update), &C::limits, "LIST", nullptr, "processors"},
    {"cpuset-mems", nullptr, only(V::update), &C::limits, "LIST", nullptr, "memory nodes"},
    {"blkio-weight", nullptr, only(V::update), &C::limits, "N", nullptr, "block device weight"},
    {"l3-cache-schema", nullptr, only(V::update), &C::limits, "TEXT", nullptr, "Intel RDT, cache"},
    {"mem-bw-schema", nullptr, only(V::update), &C::limits, "TEXT", nullptr, "Intel RDT, bandwidth"},

    {"image-path", nullptr, kImages, &C::checkpoint, "DIR", nullptr, "refused"},
    {"work-path", nullptr, kImages, &C::checkpoint, "DIR", nullptr, "refused"},
    {"parent-path", nullptr, only(V::checkpoint), &C::checkpoint, "DIR", nullptr, "refused"},
    {"status-fd", nullptr, only(V::checkpoint), &C::checkpoint, "N", nullptr, "refused"},
    {"page-server", nullptr, only(V::checkpoint), &C::checkpoint, "ADDRESS", nullptr, "refused"},
    {"manage-cgroups-mode", nullptr, kImages, &C::checkpoint, "MODE", nullptr, "refused"},
    {"empty-ns", nullptr, kImages, &C::checkpoint, "TYPE", nullptr, "refused"},
    {"lsm-profile", nullptr, only(V::restore), &C::checkpoint, "TYPE:NAME", nullptr, "refused"},
    {"lsm-mount-context", nullptr, only(V::restore), &C::checkpoint, "CONTEXT", nullptr, "refused"},
    {"leave-running", nullptr, only(V::checkpoint), SwitchField{&C::checkpoint}, nullptr, nullptr, "refused"},
    {"pre-dump", nullptr, only(V::checkpoint), SwitchField{&C::checkpoint}, nullptr, nullptr, "refused"},
    {"tcp-established", nullptr, kImages, SwitchField{&C::checkpoint}, nullptr, nullptr, "refused"},
    {"ext-unix-sk", nullptr, kImages, SwitchField{&C::checkpoint}, nullptr, nullptr, "refused"},
    {"shell-job", nullptr, kImages, SwitchField{&C::checkpoint}, nullptr, nullptr, "refused"},
    {"lazy-pages", nullptr, kImages, SwitchField{&C::checkpoint}, nullptr, nullptr, "refused"},
    {"file-locks", nullptr, kImages, SwitchField{&C::checkpoint}, nullptr, nullptr, "refused"},
    {"auto-dedup", nullptr, kImages, SwitchField{&C::checkpoint}, nullptr, nullptr, "refused"},
};

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 2), ' ');
  return text;
}

std::string flag_lines(VerbSet verb) {
  std::string lines;
  for (const auto& row : kFlags) {
    if (!(row.verbs & verb)) continue;
    std::string left =
        std::string("  ") + (row.letter ? "-" + std::string(row.letter) + ", " : "    ") + "--" + row.name;
    if (row.value) left += std::string(" ") + row.value;
    lines += padded(std::move(left), 34) + row.help + "\n";
  }
  return lines;
}

}  // namespace

std::span<const VerbRow> runtime_verbs() {
  return kVerbs;
}

std::span<const FlagRow> runtime_flags() {
  return kFlags;
}

bool takes_value(const FlagRow& row) {
  return row.value != nullptr;
}

std::string runtime_verb_text(RuntimeVerb verb) {
  for (const auto& row : kVerbs)
    if (row.verb == verb) return row.name;
  return verb == RuntimeVerb::version ? "--version" : "--help";
}

std::string runtime_help() {
  std::string text =
      "Usage: benchsand-runtime [FLAGS] VERB [FLAGS] [ID]\n"
      "An OCI runtime: engines call it (docker run --runtime benchsand). crun or runc makes the container; benchsand\n"
      "observes that every wall of the profile stands, and only then lets it run.\n\nVerbs:\n";
  for (const auto& row : kVerbs) text += padded(std::string("  ") + row.name, 14) + row.help + "\n";
  return text + "\nFlags before the verb:\n" + flag_lines(kBeforeVerb) +
         "      --version, -v               which one this is\n      --help, -h                  this; also after a "
         "verb\n";
}

std::string runtime_help(RuntimeVerb verb) {
  for (const auto& row : kVerbs) {
    if (row.verb != verb) continue;
    const std::string flags = flag_lines(only(verb));
    return std::string("Usage: benchsand-runtime ") + row.name + (flags.empty() ? "" : " [FLAGS]") +
           (row.takes_id ? " ID" : "") + (row.rest ? std::string(" ") + row.rest : "") + "\n" + row.help + "\n" +
           (flags.empty() ? "" : "\nFlags:\n" + flags);
  }
  return runtime_help();
}

}  // namespace benchsand
