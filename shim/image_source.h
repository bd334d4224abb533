// An image in a directory or a file: its documents, read and checked against each other, and its layers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oci/image_documents.h"
#include "oci/image_ref.h"
#include "shim/image_parts.h"

namespace benchsand {

std::string image_architecture();  // of this machine, as images call it: "amd64"

class ImageSource {
 public:
  // Reads the documents of an oci: or docker-archive: image. If `image` has a digest, it must be one of the image's own: of its
  // config, manifest or index. Kind usage.
  // `called` is what messages call it, if that is not its reference.
  static Result<ImageSource> open(const ImageRef& image, const std::string& called = "");

  // Of its config, manifest or index, each of which fixes all that is unpacked.
  bool has_digest(const std::string& digest) const;
  const std::string& digest() const { return digest_; }  // of the config: with its diff_ids, of all that is unpacked
  const ImageConfig& config() const { return config_; }
  const std::string& where() const { return where_; }  // what messages call it

  struct Layer {
    Fd file;
    std::string name;                   // for messages
    std::optional<std::string> digest;  // of the file; absent: an archive of Docker says only that of the plain tar
    std::string diff_id;                // of the plain tar
  };
  // The lowest first. `scratch` is a directory that may hold copies of them.
  Result<std::vector<Layer>> layers(const Fd& scratch) const;

 private:
  struct Named {
    std::string name;  // of the part
    std::optional<std::string> digest;
  };
  ImageSource(const ImageRef& image, const std::string& called);
  Result<void> read_oci();
  Result<void> read_archived();
  Result<std::string> document(const ImagePart& part);
  Result<void> take_config(const std::string& text);
  Result<void> check_pin() const;

  ImageRef image_;
  std::string where_;
  std::unique_ptr<ImageParts> parts_;
  std::string digest_;
  ImageConfig config_;
  std::vector<Named> layers_;
  std::vector<std::string> own_digests_;
};

}  // namespace benchsand
