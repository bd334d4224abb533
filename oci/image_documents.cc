#include "oci/image_documents.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "oci/image_ref.h"
#include "oci/strict_json.h"
#include "oci/yaml_tree.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::array<std::string_view, 2> kIndexTypes{"application/vnd.oci.image.index.v1+json",
                                                      "application/vnd.docker.distribution.manifest.list.v2+json"};
constexpr std::array<std::string_view, 2> kManifestTypes{"application/vnd.oci.image.manifest.v1+json",
                                                         "application/vnd.docker.distribution.manifest.v2+json"};
constexpr std::array<std::string_view, 2> kConfigTypes{"application/vnd.oci.image.config.v1+json",
                                                       "application/vnd.docker.container.image.v1+json"};
constexpr std::array<std::string_view, 9> kLayerTypes{"application/vnd.oci.image.layer.v1.tar",
                                                      "application/vnd.oci.image.layer.v1.tar+gzip",
                                                      "application/vnd.oci.image.layer.v1.tar+zstd",
                                                      "application/vnd.oci.image.layer.nondistributable.v1.tar",
                                                      "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
                                                      "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
                                                      "application/vnd.docker.image.rootfs.diff.tar",
                                                      "application/vnd.docker.image.rootfs.diff.tar.gzip",
                                                      "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& known, const std::string& text) {
  return std::find(known.begin(), known.end(), text) != known.end();
}

// One object of a document. The first mistake is kept; what is read after it does not matter.
class Reader {
 public:
  Reader(const json& value, std::string where) : value_(value), where_(std::move(where)) {
    if (!value.is_object()) fail("an object is due");
  }

  // Nullptr: not there. Engines are written in Go, which does not tell "Layers" from "layers".
  const json* find(const std::string& key) {
    if (!value_.is_object()) return nullptr;
    for (const auto& [name, member] : value_.items())
      if (name != key && folded(name) == folded(key)) fail("has " + in_quotes(name) + ", which some read as " + key);
    const auto found = value_.find(key);
    return found == value_.end() ? nullptr : &*found;
  }
  const json* require(const std::string& key) {
    const json* found = find(key);
    if (!found) fail("has no " + key);
    return found;
  }
  std::string text(const std::string& key, bool required = false) {
    const json* found = required ? require(key) : find(key);
    return found ? as_text(*found, key) : "";
  }
  std::vector<std::string> texts(const std::string& key, bool required = false) {
    const json* found = required ? require(key) : find(key);
    std::vector<std::string> list;
    if (!found) return list;
    if (!found->is_array()) fail(key + ": a list is due");
    for (const auto& item : *found) list.push_back(as_text(item, key));
    return list;
  }
  void fail(const std::string& why) {
    if (problem_.empty()) problem_ = where_ + ": " + why;
  }
  void fail(const Reader& inner) {
    if (problem_.empty()) problem_ = inner.problem_;
  }
  template <class T>
  Result<T> result(T value) const {
    if (!problem_.empty()) return usage(problem_);
    return value;
  }
  const std::string& where() const { return where_; }

 private:
  std::string as_text(const json& value, const std::string& key) {
    if (value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos)
      return value.get<std::string>();
    fail(key + ": text is due");
    return "";
  }

  const json& value_;
  std::string where_, problem_;
};

ImagePart read_part(Reader& outer, const json& value, const std::string& what) {
  Reader reader(value, outer.where() + ": " + what);
  ImagePart part{reader.text("mediaType", true), reader.text("digest", true), 0};
  if (!is_digest(part.digest))
    reader.fail("the digest " + in_quotes(part.digest) + " is not sha256: and 64 hexadecimal digits");
  if (const json* size = reader.require("size")) {
    if (size->is_number_unsigned())
      part.size = size->get<std::uint64_t>();
    else
      reader.fail("size: an integer that is not negative is due");
  }
  outer.fail(reader);
  return part;
}

std::optional<ImagePlatform> read_platform(Reader& outer, const json& entry) {
  const auto found = entry.find("platform");
  if (found == entry.end()) return std::nullopt;
  Reader reader(*found, outer.where() + ": platform");
  ImagePlatform platform{reader.text("os"), reader.text("architecture"), reader.text("variant")};
  outer.fail(reader);
  return platform;
}

std::string read_ref_name(Reader& outer, const json& entry) {
  const auto found = entry.find("annotations");
  if (found == entry.end()) return "";
  Reader reader(*found, outer.where() + ": annotations");
  std::string name = reader.text("org.opencontainers.image.ref.name");
  outer.fail(reader);
  return name;
}

void require_version(Reader& reader) {
  const json* version = reader.require("schemaVersion");
  if (version && *version != 2) reader.fail("schemaVersion is " + version->dump() + ", and only 2 is read");
}

// What a list names, each once, for messages.
std::string name_list(const std::set<std::string>& names) {
  std::string list;
  std::size_t count = 0;
  for (const auto& name : names) {
    if (++count > 8) return list + " and " + std::to_string(names.size() - 8) + " more";
    list += (list.empty() ? "" : ", ") + in_quotes(name);
  }
  return list;
}

// Docker leaves out what everybody has, Podman does not.
std::string short_name(const std::string& name) {
  const std::string hub = std::string("docker.io") + "/";
  for (const std::string& start : {hub + "library/", hub, std::string("localhost/")})
    if (name.starts_with(start)) return name.substr(start.size());
  return name;
}

}  // namespace

bool is_layer_type(const std::string& media_type) {
  return is_one_of(kLayerTypes, media_type);
}

Result<void> parse_oci_layout(const std::string& text, const std::string& where) {
  const json document = TRY(parse_strict_json(text, where));
  Reader reader(document, where);
  const std::string version = reader.text("imageLayoutVersion", true);
  if (!version.starts_with("1."))
    reader.fail("imageLayoutVersion is " + in_quotes(version) + ", and only 1.0.0 is read");
  static_cast<void>(TRY(reader.result(0)));
  return {};
}

Result<ImageIndex> parse_image_index(const std::string& text, const std::string& where) {
  const json document = TRY(parse_strict_json(text, where));
  Reader reader(document, where);
  require_version(reader);
  const std::string own = reader.text("mediaType");
  if (!own.empty() && !is_one_of(kIndexTypes, own))
    reader.fail("the media type " + in_quotes(own) + " is not that of an index");
  ImageIndex index;
  const json* manifests = reader.require("manifests");
  if (manifests && !manifests->is_array()) reader.fail("manifests: a list is due");
  if (manifests && manifests->size() > kMostManifests)
    reader.fail(std::to_string(manifests->size()) + " manifests, at most " + std::to_string(kMostManifests) +
                " are read");
  static_cast<void>(TRY(reader.result(0)));
  for (const auto& value : *manifests) {
    const std::string what = "manifests[" + std::to_string(index.entries.size()) + "]";
    ImageIndex::Entry entry{read_part(reader, value, what), false, {}, {}};
    static_cast<void>(TRY(reader.result(0)));
    entry.index = is_one_of(kIndexTypes, entry.part.media_type);
    entry.platform = read_platform(reader, value);
    entry.name = read_ref_name(reader, value);
    index.entries.push_back(std::move(entry));
  }
  return reader.result(std::move(index));
}

Result<ImageManifest> parse_image_manifest(const std::string& text, const std::string& where) {
  const json document = TRY(parse_strict_json(text, where));
  Reader reader(document, where);
  require_version(reader);
  const std::string own = reader.text("mediaType");
  if (!own.empty() && !is_one_of(kManifestTypes, own))
    reader.fail("the media type " + in_quotes(own) + " is not that of an image");
  ImageManifest manifest;
  if (const json* config = reader.require("config")) manifest.config = read_part(reader, *config, "config");
  const json* layers = reader.require("layers");
  if (layers && !layers->is_array()) reader.fail("layers: a list is due");
  if (layers && layers->size() > kMostLayers)
    reader.fail(std::to_string(layers->size()) + " layers, at most " + std::to_string(kMostLayers) + " are unpacked");
  static_cast<void>(TRY(reader.result(0)));
  if (!is_one_of(kConfigTypes, manifest.config.media_type))
    reader.fail("the config has the media type " + in_quotes(manifest.config.media_type) +
                ": this is no image that a container can have");
  for (const auto& value : *layers) {
    const std::string what = "layers[" + std::to_string(manifest.layers.size()) + "]";
    manifest.layers.push_back(read_part(reader, value, what));
    if (!is_layer_type(manifest.layers.back().media_type))
      reader.fail(what + ": the media type " + in_quotes(manifest.layers.back().media_type) +
                  " is unknown; layers are tar archives, plain or compressed with gzip or zstd");
  }
  return reader.result(std::move(manifest));
}

namespace {

void read_container_config(Reader& outer, const json& value, ImageConfig& config) {
  Reader reader(value, outer.where() + ": config");
  config.env = reader.texts("Env");
  config.entrypoint = reader.texts("Entrypoint");
  config.command = reader.texts("Cmd");
  config.user = reader.text("User");
  config.workdir = reader.text("WorkingDir");
  if (const json* volumes = reader.find("Volumes")) {
    if (!volumes->is_object()) reader.fail("Volumes: an object is due");
    if (volumes->is_object())
      for (const auto& [path, nothing] : volumes->items()) config.volumes.push_back(path);
  }
  outer.fail(reader);
}

}  // namespace

Result<ImageConfig> parse_image_config(const std::string& text, const std::string& where) {
  const json document = TRY(parse_strict_json(text, where));
  Reader reader(document, where);
  ImageConfig config;
  config.platform = {reader.text("os", true), reader.text("architecture", true), reader.text("variant")};
  config.created = reader.text("created");
  if (const json* rootfs = reader.require("rootfs")) {
    Reader inner(*rootfs, where + ": rootfs");
    if (const std::string type = inner.text("type", true); type != "layers")
      inner.fail("the type is " + in_quotes(type) + ", and only layers are read");
    config.diff_ids = inner.texts("diff_ids", true);
    for (const auto& digest : config.diff_ids)
      if (!is_digest(digest))
        inner.fail("the diff_id " + in_quotes(digest) + " is not sha256: and 64 hexadecimal digits");
    reader.fail(inner);
  }
  if (const json* inner = reader.find("config")) read_container_config(reader, *inner, config);
  return reader.result(std::move(config));
}

Result<std::vector<ArchivedImage>> parse_archive_manifest(const std::string& text, const std::string& where) {
  const json document = TRY(parse_strict_json(text, where));
  if (!document.is_array()) return usage(where + ": a list is due");
  if (document.size() > kMostManifests)
    return usage(where + ": " + std::to_string(document.size()) + " images, at most " + std::to_string(kMostManifests) +
                 " are read");
  std::vector<ArchivedImage> images;
  for (const auto& value : document) {
    Reader reader(value, where + ": [" + std::to_string(images.size()) + "]");
    ArchivedImage image{reader.text("Config", true), reader.texts("RepoTags"), reader.texts("Layers", true)};
    if (image.layers.size() > kMostLayers)
      reader.fail(std::to_string(image.layers.size()) + " layers, at most " + std::to_string(kMostLayers) +
                  " are unpacked");
    images.push_back(TRY(reader.result(std::move(image))));
  }
  return images;
}

namespace {

// Without what a builder says of its own work, which stands beside the images and is for no platform.
std::vector<ImageIndex::Entry> images_of(const ImageIndex& index, const WantedEntry& wanted) {
  std::vector<ImageIndex::Entry> images, pinned;
  for (const auto& entry : index.entries) {
    if (entry.platform && entry.platform->os == "unknown") continue;
    if (!wanted.name.empty() && entry.name != wanted.name) continue;
    images.push_back(entry);
    if (entry.part.digest == wanted.digest) pinned.push_back(entry);
  }
  return pinned.empty() ? images : pinned;
}

std::unexpected<Error> no_entry(const ImageIndex& index, const WantedEntry& wanted, const std::string& where) {
  std::set<std::string> names;
  for (const auto& entry : index.entries)
    if (!entry.name.empty()) names.insert(entry.name);
  if (wanted.name.empty()) return usage(where + ": there is no image in it");
  return usage(where + ": there is no image " + in_quotes(wanted.name) +
               (names.empty() ? "; none has a name there" : "; there are " + name_list(names)));
}

}  // namespace

Result<ImageIndex::Entry> choose_entry(const ImageIndex& index, const WantedEntry& wanted, const std::string& where) {
  std::vector<ImageIndex::Entry> fitting;
  std::set<std::string> names, platforms, digests;
  const auto images = images_of(index, wanted);
  for (const auto& entry : images) {
    if (entry.platform) platforms.insert(entry.platform->os + "/" + entry.platform->architecture);
    if (entry.platform && (entry.platform->os != "linux" || entry.platform->architecture != wanted.architecture))
      continue;
    if (!digests.insert(entry.part.digest).second) continue;
    if (!entry.name.empty()) names.insert(entry.name);
    fitting.push_back(entry);
  }
  if (images.empty()) return no_entry(index, wanted, where);
  if (fitting.empty())
    return usage(where + ": there is no image for linux/" + wanted.architecture + ", only for " + name_list(platforms));
  if (fitting.size() > 1)
    return usage(where + ": there are " + std::to_string(fitting.size()) + " images; say which behind a colon" +
                 (names.empty() ? ", or by its digest behind an @" : ": " + name_list(names)));
  const auto& type = fitting[0].part.media_type;
  if (fitting[0].index || is_one_of(kManifestTypes, type)) return fitting[0];
  return usage(where + ": the media type " + in_quotes(type) + " is unknown; an image or an index is due");
}

Result<ArchivedImage> choose_archived(const std::vector<ArchivedImage>& images, const std::string& name,
                                      const std::string& where) {
  std::set<std::string> names;
  const ArchivedImage* found = nullptr;
  for (const auto& image : images)
    for (const auto& one : image.names) {
      names.insert(one);
      if (!name.empty() && short_name(one) == short_name(name) && !found) found = &image;
    }
  if (found) return *found;
  if (name.empty() && images.size() == 1) return images.front();
  if (images.empty()) return usage(where + ": there is no image in it");
  if (name.empty())
    return usage(where + ": there are " + std::to_string(images.size()) +
                 " images; say which behind a colon: " + name_list(names));
  return usage(where + ": there is no image " + in_quotes(name) +
               (names.empty() ? "; none has a name there" : "; there are " + name_list(names)));
}

Result<void> check_image(const ImageConfig& config, std::size_t layers, const std::string& architecture,
                         const std::string& where) {
  if (config.platform.os != "linux" || config.platform.architecture != architecture)
    return usage(where + ": it is for " + config.platform.os + "/" + config.platform.architecture +
                 ", and this machine is linux/" + architecture);
  if (config.diff_ids.size() != layers)
    return usage(where + ": " + std::to_string(layers) + " layers, and the config has digests of " +
                 std::to_string(config.diff_ids.size()));
  return {};
}

}  // namespace benchsand
