// A drop-in of containers.conf.d, which is benchsand's alone: Podman adds it to what its other files say.
#pragma once

#include "oci/install.h"

namespace benchsand {

Result<std::string> podman_drop_in(const std::string& text, const std::string& file, const Registration& registration);
Result<std::string> remove_podman_drop_in(const std::string& text, const std::string& file);

}  // namespace benchsand
