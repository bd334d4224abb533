// The command line of an OCI runtime, as containerd, dockerd, conmon, Podman, CRI-O and buildah write it: parsed to a model, and
// rebuilt for the delegate. Nothing that was not understood is handed on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "oci/result.h"

namespace benchsand {

enum class RuntimeVerb {
  create,
  start,
  run,
  state,
  kill,
  remove,  // `delete`
  exec,
  ps,
  update,
  pause,
  resume,
  checkpoint,
  restore,
  events,
  list,
  spec,
  features,
  version,  // `--version`
  help,     // `--help` before any verb
};
std::string runtime_verb_text(RuntimeVerb verb);

struct RuntimeCall {
  RuntimeVerb verb = RuntimeVerb::help;
  bool help = false;  // `VERB --help`: nothing is done

  // Before the verb.
  std::string root, log, log_format, criu, cgroup_manager, rootless;  // empty: not given
  bool debug = false, systemd_cgroup = false;

  // After it; which verb has which is in the table (oci/runtime_flags.h).
  std::string id;
  std::string bundle = ".";
  std::string config, pid_file, console_socket, pidfd_socket, process_file;
  std::string resources_file;                 // "-": standard input
  std::map<std::string, std::string> limits;  // of update, by the flag's name: "memory-swap" -> "-1"
  std::string signal;                         // of kill; empty: TERM
  std::string format, interval, file, preserve_fds;
  std::string cwd, user, process_label, apparmor, cgroup;
  std::vector<std::string> environment, capabilities, groups;
  std::vector<std::string> command;  // of exec: program and arguments; of ps: options
  bool all = false, force = false, regex = false, detach = false, keep = false, tty = false, quiet = false,
       stats = false;
  bool no_pivot = false, no_new_keyring = false, no_subreaper = false, no_new_privileges = false, ignore_paused = false;
  std::map<std::string, std::string> checkpoint;  // flags of checkpoint and restore, which are refused
};

// Whose rules hold: benchsand's, or (profile `passthrough`) the delegate's own, for its conformance suites.
enum class ArgumentRules { walls, passthrough };

// `arguments` without argv[0]. Kind usage.
Result<RuntimeCall> parse_runtime_call(const std::vector<std::string>& arguments,
                                       ArgumentRules rules = ArgumentRules::walls);

// What benchsand itself decides when it hands a call on. An empty path is left out, whatever the caller had.
struct DelegatePlaces {
  std::string delegate;  // crun or runc
  std::string root, id;
  std::string log, bundle, pid_file, console_socket, process_file, resources_file;
};
// argv without argv[0]; for the verbs that a delegate is asked for.
std::vector<std::string> delegate_arguments(const RuntimeCall& call, const DelegatePlaces& places);
// The caller's own places, in the canonical form.
std::vector<std::string> passthrough_arguments(const RuntimeCall& call, const std::string& delegate);

}  // namespace benchsand
