// daemon.json of dockerd: one member of `runtimes` for each name.
#pragma once

#include "oci/install.h"

namespace benchsand {

Result<std::string> add_to_daemon_json(const std::string& text, const std::string& file,
                                       const std::vector<NamedRuntime>& runtimes);
Result<std::string> remove_from_daemon_json(const std::string& text, const std::string& file);

}  // namespace benchsand
