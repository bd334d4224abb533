// config.toml of containerd: a block of tables at its end, one handler for each name.
#pragma once

#include "oci/install.h"

namespace benchsand {

Result<std::string> add_to_containerd(const std::string& text, const std::string& file,
                                      const std::vector<NamedRuntime>& runtimes);
Result<std::string> remove_from_containerd(const std::string& text, const std::string& file);

}  // namespace benchsand
