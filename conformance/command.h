// `benchsand conformance`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "oci/result.h"

namespace CLI {
class App;
}

namespace benchsand::conformance {

// `done` is given the exit status, or what was wrong. `arguments` are those of the program, which may have to become another one.
void add_command(CLI::App& app, char** arguments, const std::function<void(const Result<int>&)>& done);

// What suites that were killed have left. A line for each.
Result<std::vector<std::string>> clear_dead_stages();

}  // namespace benchsand::conformance
