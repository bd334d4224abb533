#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "shim/engine_commands.h"
#include "shim/sys.h"

namespace benchsand {

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
