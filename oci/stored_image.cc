#include "oci/stored_image.h"

#include <algorithm>

#include "oci/json_path.h"
#include "oci/yaml_tree.h"

namespace benchsand {

using nlohmann::json;

namespace {

// Absent, null and empty are the same to engines.
std::string text_at(const json& object, const char* pointer) {
  const json& found = json_at(object, pointer);
  return found.is_string() ? found.get<std::string>() : "";
}

std::vector<std::string> texts_at(const json& object, const char* pointer) {
  const json& found = json_at(object, pointer);
  std::vector<std::string> list;
  if (found.is_string()) list.push_back(found);
  if (found.is_array())
    for (const auto& item : found)
      if (item.is_string()) list.push_back(item);
  return list;
}

}  // namespace

Result<StoredImage> parse_stored_image(const json& answer, const std::string& where) {
  if (!answer.is_object()) return fault(where + ": the answer is no object");
  StoredImage image;
  image.id = text_at(answer, "/Id");
  if (!image.id.starts_with("sha256:")) image.id = "sha256:" + image.id;  // Podman's
  if (!is_digest(image.id)) return fault(where + ": the answer has no id that is a digest: " + in_quotes(image.id));
  for (const auto& name : texts_at(answer, "/RepoDigests"))
    if (const std::string digest = name.substr(name.rfind('@') + 1); is_digest(digest)) image.digests.push_back(digest);
  if (const std::string digest = text_at(answer, "/Digest"); is_digest(digest)) image.digests.push_back(digest);
  image.is_oci = text_at(answer, "/ManifestType").starts_with("application/vnd.oci.");
  ImageConfig& config = image.config;
  config.platform = {text_at(answer, "/Os"), text_at(answer, "/Architecture"), text_at(answer, "/Variant")};
  config.created = text_at(answer, "/Created");
  config.diff_ids = texts_at(answer, "/RootFS/Layers");
  config.env = texts_at(answer, "/Config/Env");
  config.entrypoint = texts_at(answer, "/Config/Entrypoint");
  config.command = texts_at(answer, "/Config/Cmd");
  config.user = text_at(answer, "/Config/User");
  config.workdir = text_at(answer, "/Config/WorkingDir");
  if (const json& volumes = json_at(answer, "/Config/Volumes"); volumes.is_object())
    for (const auto& [path, nothing] : volumes.items()) config.volumes.push_back(path);
  return image;
}

Result<void> check_stored_digest(const StoredImage& image, const ImageRef& wanted, const std::string& where) {
  const auto& digests = image.digests;
  if (wanted.digest.empty() || wanted.digest == image.id ||
      std::find(digests.begin(), digests.end(), wanted.digest) != digests.end())
    return {};
  std::string found = image.id;
  for (const auto& digest : digests)
    if (found.find(digest) == std::string::npos) found += ", " + digest;
  return usage(where + " has another digest: expected " + wanted.digest + ", found " + found);
}

std::vector<std::string> lookup_names(const ImageRef& image) {
  if (image.name.empty()) return {image.digest};
  const bool tagged =
      image.name.find(':', image.name.rfind('/') == std::string::npos ? 0 : image.name.rfind('/')) != std::string::npos;
  if (image.digest.empty()) return {image.name};
  // A tag that has moved on since is named in the error; the image itself may still be there.
  if (tagged) return {image.name.substr(0, image.name.rfind(':')) + "@" + image.digest, image.digest, image.name};
  return {image.name + "@" + image.digest, image.digest, image.name};
}

}  // namespace benchsand
