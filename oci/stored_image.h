// An image as an engine shows it. What it says of the image is believed only as far as the unpacked layers agree.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oci/image_documents.h"
#include "oci/image_ref.h"

namespace benchsand {

struct StoredImage {
  std::string id;                    // "sha256:…"
  std::vector<std::string> digests;  // of the manifests by which it was pulled
  bool is_oci = false;               // as Podman says of its own
  ImageConfig config;                // with diff_ids
};

// The answer to an engine's inspect. Kind fault.
Result<StoredImage> parse_stored_image(const nlohmann::json& answer, const std::string& where);

// The digest of `wanted` is one of the image's. Kind usage.
Result<void> check_stored_digest(const StoredImage& image, const ImageRef& wanted, const std::string& where);

// By which names an engine is asked, the first that it knows is taken.
std::vector<std::string> lookup_names(const ImageRef& image);

}  // namespace benchsand
