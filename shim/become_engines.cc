#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "shim/engine_commands.h"
#include "shim/front_desk.h"
#include "shim/sys.h"

namespace benchsand {

bool an_engine_is_here() {
  for (const char* variable : {"DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST"})
    if (const char* value = std::getenv(variable); value != nullptr && *value != 0) return true;
  for (const char* socket : {"/var/run/docker.sock", "/run/podman/podman.sock"})
    if (::access(socket, F_OK) == 0) return true;
  // What a run on a podman service of its own leaves when it is killed.
  const auto names = sys::list_directory(sys::kHere, kOrderBase);
  return names && std::any_of(names->begin(), names->end(),
                              [](const std::string& name) { return name.ends_with(".podman.log"); });
}

Error become_engines(char** arguments) {
  const auto self = sys::readlinkat(sys::kHere, "/proc/self/exe");
  if (!self) return self.error();
  const std::string here = self->substr(0, self->rfind('/'));
  // In a build folder, and where the package has it.
  for (const char* place : {"/benchsand-engines", "/../lib/benchsand/benchsand-engines"}) {
    const std::string program = here + place;
    ::execv(program.c_str(), arguments);
    if (errno != ENOENT) return {Error::Kind::fault, "execute " + program + ": " + std::strerror(errno), errno};
  }
  return {Error::Kind::fault,
          "call the engine: the program benchsand-engines is neither beside " + *self +
              " nor in ../lib/benchsand; install benchsand as a whole",
          ENOENT};
}

}  // namespace benchsand
