// The documents of an image: what layers it is made of, and what it says of itself. All of them come from whoever made the image.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oci/result.h"

namespace benchsand {

inline constexpr std::size_t kMostLayers = 256, kMostManifests = 1000;
inline constexpr int kDeepestIndex = 4;

// A part of an image, by its digest.
struct ImagePart {
  std::string media_type, digest;
  std::uint64_t size = 0;
};

struct ImagePlatform {
  std::string os, architecture, variant;
};

// index.json, or an index inside an image.
struct ImageIndex {
  struct Entry {
    ImagePart part;
    bool index = false;                     // another index
    std::optional<ImagePlatform> platform;  // absent: not said
    std::string name;                       // annotation org.opencontainers.image.ref.name
  };
  std::vector<Entry> entries;
};

struct ImageManifest {
  ImagePart config;
  std::vector<ImagePart> layers;  // the lowest first; tar, plain or compressed
};

// What the image would have an engine do. None of it is done unless the task asks for it.
struct ImageConfig {
  ImagePlatform platform;
  std::vector<std::string> diff_ids;  // of the layers as plain tar
  std::string created;
  std::vector<std::string> env, entrypoint, command, volumes;
  std::string user, workdir;
};

// An entry of the manifest.json of `docker save`: names inside the archive.
struct ArchivedImage {
  std::string config;
  std::vector<std::string> names, layers;
};

// `where` names the document in messages: "index.json in IMAGE". All are of kind usage.
Result<void> parse_oci_layout(const std::string& text, const std::string& where);
Result<ImageIndex> parse_image_index(const std::string& text, const std::string& where);
Result<ImageManifest> parse_image_manifest(const std::string& text, const std::string& where);
Result<ImageConfig> parse_image_config(const std::string& text, const std::string& where);
Result<std::vector<ArchivedImage>> parse_archive_manifest(const std::string& text, const std::string& where);

// The entry of the top index that has this name, if one is given, or this digest; else the only one for this machine.
struct WantedEntry {
  std::string name, digest, architecture;
};
Result<ImageIndex::Entry> choose_entry(const ImageIndex& index, const WantedEntry& wanted, const std::string& where);
Result<ArchivedImage> choose_archived(const std::vector<ArchivedImage>& images, const std::string& name,
                                      const std::string& where);

// It is for Linux on `architecture`, and has a digest for each of `layers`.
Result<void> check_image(const ImageConfig& config, std::size_t layers, const std::string& architecture,
                         const std::string& where);

// A media type of a layer: tar, tar+gzip, tar+zstd, of OCI or Docker, distributable or not.
bool is_layer_type(const std::string& media_type);

}  // namespace benchsand
