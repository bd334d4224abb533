// What an image would have an engine do, and benchsand does not, because the task did not ask for it.
#pragma once

#include <string>
#include <vector>

#include "oci/image_documents.h"
#include "oci/policy.h"

namespace benchsand {

std::vector<std::string> image_notices(const ImageConfig& config, const Policy& policy);

// `command: ["python3", "-m", "app"]`, as a task would say what the image would start; empty when it would start nothing.
std::string suggested_command(const ImageConfig& config);

}  // namespace benchsand
