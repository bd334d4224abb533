// The unpacked images as a list for people, the last used one first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oci/image_entry.h"

namespace benchsand {

struct ListedImage {
  std::string hex;                  // of its digest
  std::optional<ImageEntry> entry;  // absent: what lies beside it cannot be read
  std::uint64_t used = 0;           // when it was last, in seconds since 1970
  bool in_use = false;
};

std::string image_list(std::vector<ListedImage> images, std::uint64_t now);

// The one that `wanted` is: a name by which a task asked for it, or the beginning of its digest (four digits at least). Kind usage.
Result<ListedImage> find_image(const std::vector<ListedImage>& images, const std::string& wanted);

std::string rounded_size(std::uint64_t bytes);  // "12.3 MiB"
std::string time_ago(std::uint64_t seconds);    // "3 hours ago"

}  // namespace benchsand
