// benchsand-runtime: the OCI runtime that container engines call. stdout carries results, --log and stderr one error.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "oci/runtime_error.h"
#include "oci/runtime_flags.h"
#include "oci/runtime_settings.h"
#include "shim/runtime_verbs.h"

namespace benchsand {
namespace {

constexpr int kFailed = 1;
// An exit status below 128 of `exec` is the program's own; this is runc's for a program that was never started.
constexpr int kExecFailed = 255;

Result<int> dispatch(const RuntimeContext& context, const RuntimeCall& call) {
  switch (call.verb) {
    case RuntimeVerb::create:
      return verb_create(context, call);
    case RuntimeVerb::start:
      return verb_start(context, call);
    case RuntimeVerb::run:
      return verb_run(context, call);
    case RuntimeVerb::state:
      return verb_state(context, call);
    case RuntimeVerb::kill:
      return verb_kill(context, call);
    case RuntimeVerb::remove:
      return verb_delete(context, call);
    case RuntimeVerb::exec:
      return verb_exec(context, call);
    case RuntimeVerb::ps:
      return verb_ps(context, call);
    case RuntimeVerb::update:
      return verb_update(context, call);
    case RuntimeVerb::pause:
      return verb_pause(context, call);
    case RuntimeVerb::resume:
      return verb_resume(context, call);
    case RuntimeVerb::events:
      return verb_events(context, call);
    case RuntimeVerb::list:
      return verb_list(context, call);
    case RuntimeVerb::spec:
      return verb_spec(context, call);
    case RuntimeVerb::features:
      return verb_features(context, call);
    case RuntimeVerb::checkpoint:
    case RuntimeVerb::restore:
      return usage(runtime_verb_text(call.verb) +
                   " is refused: an image carries a state of its own that no wall has looked at");
    case RuntimeVerb::version:
    case RuntimeVerb::help:
      break;
  }
  std::fputs((call.verb == RuntimeVerb::version ? version_text() : runtime_help()).c_str(), stdout);
  return 0;
}

// Podman asks by `checkpoint --help` whether there is such a verb.
bool is_refused(RuntimeVerb verb) {
  return verb == RuntimeVerb::checkpoint || verb == RuntimeVerb::restore;
}

// A sandboxed process must not find a descriptor of the engine's here, and where 0, 1 or 2 is closed the next file opened
// would become it.
void have_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) < 0) ::_exit(kFailed);
}

Result<int> run(const std::string& called_as, const std::vector<std::string>& arguments) {
  const std::string profile = TRY(profile_of_program(called_as));
  if (profile == kPassthrough) return pass_through(TRY(parse_runtime_call(arguments, ArgumentRules::passthrough)));
  have_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);  // a caller that ignores it would take our children's exit statuses away
  RuntimeCall call = TRY(parse_runtime_call(arguments));
  if (call.help && !is_refused(call.verb)) {
    std::fputs(runtime_help(call.verb).c_str(), stdout);
    return 0;
  }
  const auto context = make_runtime_context(called_as, profile, call);
  return dispatch(context, call);
}

void append(const std::string& path, const std::string& line) {
  const auto log = sys::openat(sys::kHere, path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0644);
  const auto written = log ? sys::write_all(*log, line, path) : std::unexpected(log.error());
  if (!written) std::fprintf(stderr, "benchsand: %s\n", written.error().message.c_str());
}

// Once in the log and once on stderr: containerd reads the one, conmon and people the other.
int complain(const Error& error, const std::vector<std::string>& arguments) {
  const std::string message = neutral_wording(error.message);
  const LogPlace log = log_place(arguments);
  if (!log.path.empty()) {
    const std::string now = sys::utc_now();
    append(log.path, log.json ? runtime_error_line(message, now) : runtime_error_text(message, now));
  }
  if (log.path != "/dev/stderr") std::fprintf(stderr, "benchsand: %s\n", message.c_str());
  const auto call = parse_runtime_call(arguments);
  return call && call->verb == RuntimeVerb::exec ? kExecFailed : kFailed;
}

}  // namespace
}  // namespace benchsand

int main(int argc, char** argv) {
  if (argc < 1) return 1;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    const auto done = benchsand::run(argv[0], arguments);
    return done ? *done : benchsand::complain(done.error(), arguments);
  } catch (const std::exception& error) {
    return benchsand::complain({benchsand::Error::Kind::fault, std::string("an error in benchsand: ") + error.what()},
                               arguments);
  }
}
