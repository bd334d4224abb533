// The files that an image is made of, in a directory or in a tar archive (plain, or compressed with gzip, xz or zstd).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shim/sys.h"

namespace benchsand {

class ImageParts {
 public:
  virtual ~ImageParts() = default;
  // A document, at most kLargestJson bytes. Kind usage when it is not there.
  virtual Result<std::string> text(const std::string& name) const = 0;
  virtual bool has(const std::string& name) const = 0;
  // What is in an archive is copied into files without a name in `scratch`.
  virtual Result<std::vector<Fd>> files(const std::vector<std::string>& names, const Fd& scratch) const = 0;
};

// `where` is what messages call the image.
Result<std::unique_ptr<ImageParts>> image_parts(const std::string& path, const std::string& where);

}  // namespace benchsand
