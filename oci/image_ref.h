// What a task names as its image: one in an engine's store, or one that lies in a file or directory.
#pragma once

#include <string>

#include "oci/result.h"

namespace benchsand {

enum class ImageForm { stored, oci, docker_archive };

struct ImageRef {
  ImageForm form = ImageForm::stored;
  std::string path;    // oci, docker-archive; as written, or absolute once it is decided
  std::string name;    // stored: NAME with its tag; oci: REF; docker-archive: NAME:TAG; empty: the only one there
  std::string digest;  // "sha256:…", what it must be; empty: whatever it is
};

// NAME[:TAG][@sha256:…], oci:DIR|FILE[:REF][@sha256:…], docker-archive:FILE[:NAME:TAG][@sha256:…]. A path cannot hold a colon. A name
// without a tag means `latest`, unless it has a digest. Kind usage.
Result<ImageRef> parse_image_ref(const std::string& text);

std::string to_text(const ImageRef& image);  // which parse_image_ref reads back

// "sha256:" and 64 lower-case hexadecimal digits.
bool is_digest(const std::string& text);
std::string digest_hex(const std::string& digest);  // without "sha256:"

}  // namespace benchsand
