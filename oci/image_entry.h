// What benchsand keeps beside an unpacked image, in its cache.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oci/image_documents.h"

namespace benchsand {

struct ImageEntry {
  std::string digest;              // of the config
  std::vector<std::string> names;  // by which tasks asked for it
  std::vector<std::string> ids;    // by which engines know it, where that is not the digest
  std::string unpacked;            // when
  std::uint64_t bytes = 0, entries = 0;
  std::vector<std::string> notices;  // what was left out, and what its author may not have meant to be in it
  ImageConfig config;                // without its diff_ids
};

nlohmann::json image_entry_json(const ImageEntry& entry);
Result<ImageEntry> parse_image_entry(const std::string& text, const std::string& where);

}  // namespace benchsand
