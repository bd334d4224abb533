// Images, each unpacked once and kept by the digest of its config.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oci/image_entry.h"
#include "oci/image_list.h"
#include "shim/image_source.h"
#include "shim/unpack_cache.h"

namespace benchsand {

inline constexpr const char* kImageCache = "/var/lib/benchsand/images";

struct UsedImage {
  ImageEntry entry;
  std::string path;  // of its root file system, for messages
  Fd rootfs;
  Fd in_use;  // while it is open, nobody removes the image
};

class ImageCache {
 public:
  static Result<ImageCache> make();
  static Result<std::optional<ImageCache>> find();

  // Nullopt: it is not unpacked. `name` is noted as one by which it was asked for.
  Result<std::optional<UsedImage>> use(const std::string& digest, const std::string& name) const;
  // By what an engine calls it, which need not be its digest.
  Result<std::optional<UsedImage>> use_by_id(const std::string& id, const std::string& name) const;
  // Unpacks it unless that was done before. `ids` are noted: digests of its documents, by which it is found again.
  Result<UsedImage> take(const ImageSource& source, const std::string& name,
                         const std::vector<std::string>& ids = {}) const;

  std::string path() const { return kImageCache; }
  Result<std::vector<ListedImage>> list() const;
  // False: a run uses it, or it is gone.
  Result<bool> remove(const std::string& hex) const;
  Result<std::vector<std::string>> collect_garbage() const { return cache_.collect_garbage(); }

 private:
  explicit ImageCache(UnpackCache cache) : cache_(std::move(cache)) {}
  ListedImage listed(const std::string& hex) const;
  Result<void> unpack(const UnpackCache::Unpacking& unpacking, const ImageSource& source, ImageEntry entry) const;

  UnpackCache cache_;
};

Result<std::vector<std::string>> collect_image_garbage();

}  // namespace benchsand
