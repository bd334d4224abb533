#include "shim/image_source.h"

#include <sys/utsname.h>

#include <algorithm>

#include "oci/sha256.h"
#include "oci/yaml_tree.h"

namespace benchsand {

namespace {

constexpr std::size_t kHexDigits = 64;

std::string blob_name(const std::string& digest) {
  return "blobs/sha256/" + digest_hex(digest);
}

// The digest that a name in an archive of Docker's promises: "HEX.json", or "blobs/sha256/HEX".
std::optional<std::string> promised_digest(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  std::string last = slash == std::string::npos ? name : name.substr(slash + 1);
  for (const char* suffix : {".json", ".tar"})
    if (last.ends_with(suffix)) last.resize(last.size() - std::string(suffix).size());
  const std::string digest = "sha256:" + last;
  // A folder named by an id has files that are named by what they are.
  if (last.size() != kHexDigits || !is_digest(digest)) return std::nullopt;
  return digest;
}

}  // namespace

std::string image_architecture() {
  utsname names{};
  ::uname(&names);
  const std::string machine = names.machine;
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return machine;
}

ImageSource::ImageSource(const ImageRef& image, const std::string& called)
    : image_(image), where_(called.empty() ? "the image " + to_text(image) : called) {}

Result<ImageSource> ImageSource::open(const ImageRef& image, const std::string& called) {
  ImageSource source(image, called);
  source.parts_ = TRY(image_parts(image.path, source.where_));
  TRY_VOID(image.form == ImageForm::oci ? source.read_oci() : source.read_archived());
  TRY_VOID(check_image(source.config_, source.layers_.size(), image_architecture(), source.where_));
  TRY_VOID(source.check_pin());
  return source;
}

// Read by its digest, and of the size that was promised.
Result<std::string> ImageSource::document(const ImagePart& part) {
  const std::string name = blob_name(part.digest), text = TRY(parts_->text(name));
  const std::string found = "sha256:" + sha256_hex(text);
  if (found != part.digest)
    return usage(where_ + ": " + name + " is expected to have its name as digest, found " + found);
  if (text.size() != part.size)
    return usage(where_ + ": " + name + " is expected to have " + std::to_string(part.size) + " bytes, found " +
                 std::to_string(text.size()));
  own_digests_.push_back(part.digest);
  return text;
}

Result<void> ImageSource::read_oci() {
  if (!parts_->has("oci-layout") && parts_->has("manifest.json"))
    return usage(where_ + ": it is an archive of `docker save`; name it docker-archive:" + image_.path);
  const auto within = [this](const std::string& name) { return where_ + ": " + name; };
  TRY_VOID(parse_oci_layout(TRY(parts_->text("oci-layout")), within("oci-layout")));
  ImageIndex index = TRY(parse_image_index(TRY(parts_->text("index.json")), within("index.json")));
  WantedEntry wanted{image_.name, image_.digest, image_architecture()};
  auto entry = TRY(choose_entry(index, wanted, where_));
  for (int depth = 0; entry.index; ++depth) {
    if (depth == kDeepestIndex)
      return usage(where_ + ": indexes stand in each other deeper than " + std::to_string(kDeepestIndex));
    index = TRY(parse_image_index(TRY(document(entry.part)), within(blob_name(entry.part.digest))));
    wanted.name.clear();
    entry = TRY(choose_entry(index, wanted, where_));
  }
  const auto manifest = TRY(parse_image_manifest(TRY(document(entry.part)), within(blob_name(entry.part.digest))));
  TRY_VOID(take_config(TRY(document(manifest.config))));
  for (const auto& layer : manifest.layers) layers_.push_back({blob_name(layer.digest), layer.digest});
  return {};
}

Result<void> ImageSource::read_archived() {
  if (!parts_->has("manifest.json") && parts_->has("index.json"))
    return usage(where_ + ": it is an OCI image; name it oci:" + image_.path);
  const auto images = TRY(parse_archive_manifest(TRY(parts_->text("manifest.json")), where_ + ": manifest.json"));
  const auto image = TRY(choose_archived(images, image_.name, where_));
  const std::string text = TRY(parts_->text(image.config)), found = "sha256:" + sha256_hex(text);
  const auto promised = promised_digest(image.config);
  if (promised && *promised != found)
    return usage(where_ + ": the config " + in_quotes(image.config) +
                 " is expected to have its name as digest, found " + found);
  own_digests_.push_back(found);
  TRY_VOID(take_config(text));
  for (const auto& name : image.layers) layers_.push_back({name, std::nullopt});
  return {};
}

Result<void> ImageSource::take_config(const std::string& text) {
  digest_ = "sha256:" + sha256_hex(text);
  config_ = TRY(parse_image_config(text, where_ + ": its config"));
  return {};
}

bool ImageSource::has_digest(const std::string& digest) const {
  return std::find(own_digests_.begin(), own_digests_.end(), digest) != own_digests_.end();
}

Result<void> ImageSource::check_pin() const {
  if (image_.digest.empty() || has_digest(image_.digest)) return {};
  std::string found;
  for (const auto& digest : own_digests_) found += (found.empty() ? "" : ", ") + digest;
  return usage("check " + where_ + ": expected the digest " + image_.digest + ", found " + found +
               "; get the image again, or change the digest in the task");
}

Result<std::vector<ImageSource::Layer>> ImageSource::layers(const Fd& scratch) const {
  std::vector<std::string> names;
  for (const auto& layer : layers_) names.push_back(layer.name);
  auto files = TRY(parts_->files(names, scratch));
  std::vector<Layer> list;
  for (std::size_t i = 0; i < files.size(); ++i)
    list.push_back({std::move(files[i]), names[i], layers_[i].digest, config_.diff_ids[i]});
  return list;
}

}  // namespace benchsand
