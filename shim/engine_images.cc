#include "shim/engine_images.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "oci/image_notices.h"
#include "oci/record.h"
#include "oci/yaml_tree.h"
#include "shim/engine_service.h"
#include "shim/front_desk.h"
#include "shim/image_cache.h"
#include "shim/rootfs.h"
#include "shim/run_folder.h"
#include "shim/tree_tar.h"
#include "shim/tree_writer.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::uint64_t kLongestSilence = 600'000'000;  // an engine packs an image before it sends the first byte of it
constexpr std::size_t kShortestId = 4;
constexpr const char* kRepository = "benchsand-rootfs";

std::string named(EngineClient& engine, const std::string& name) {
  return std::string(to_text(engine.kind())) + " at " + engine.endpoint().text() + ": the image " + in_quotes(name);
}

// Nullopt: it has no such image.
Result<std::optional<StoredImage>> inspect_image(EngineClient& engine, const std::string& name) {
  const auto answer = TRY(engine.call(
      {"GET", "/images/" + url_encoded(name) + "/json", "look for the image " + in_quotes(name), nullptr, {200, 404}}));
  if (answer.status == 404) return std::nullopt;
  return TRY(parse_stored_image(answer.body, "look for the image " + in_quotes(name)));
}

Result<Fd> nameless_file(const std::string& directory) {
  Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return sys_error("open a file without a name in", directory, errno);
  return file;
}

// As an archive in a file without a name.
Result<Fd> exported(EngineClient& engine, const StoredImage& image, const ImageCache& cache) {
  Fd file = TRY(nameless_file(cache.path()));
  std::uint64_t left = TreeBounds{}.bytes;
  const bool podman = engine.kind() == ApiKind::podman;
  HttpRequest request{
      .method = "GET", .target = engine.target("/images/" + url_encoded(image.id) + "/get"), .body = {}};
  if (podman) request.target += image.is_oci ? "?format=oci-archive" : "?format=docker-archive";
  request.within_us = kLongestSilence;
  const auto answer = TRY(engine.http().download(request, [&](std::string_view bytes) -> Result<void> {
    if (bytes.size() > left) return fault("it is larger than benchsand unpacks");
    left -= bytes.size();
    return sys::write_all(file, bytes, "the image of an engine");
  }));
  if (answer.status != 200) return engine.refused("take the image " + image.id + " out of the store", answer);
  return file;
}

// An engine that keeps manifests calls an image by one of these, and exports them beside what Docker's archives have.
Result<ImageSource> opened_export(const Fd& file, bool oci, const StoredImage& image, const std::string& called) {
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  auto source = TRY(ImageSource::open({oci ? ImageForm::oci : ImageForm::docker_archive, path, "", ""}, called));
  if (source.has_digest(image.id)) return source;
  if (auto by_manifest = ImageSource::open({ImageForm::oci, path, "", image.id}, called)) return by_manifest;
  return source;
}

// Its documents name what the engine says it has; the layers are then checked against them. The id too is only said, until a
// document of the image has it as its digest: no run is to find under an id what is not of that id.
Result<std::string> unpack(EngineClient& engine, const StoredImage& image, const ImageRef& wanted) {
  const std::string name = to_text(wanted);
  const auto cache = TRY(ImageCache::make());
  if (auto ready = TRY(cache.use_by_id(image.id, name))) return ready->entry.digest;
  const Fd file = TRY(exported(engine, image, cache));
  const bool oci = engine.kind() == ApiKind::podman && image.is_oci;
  const auto source = TRY(opened_export(file, oci, image, "the image " + name + " of " + to_text(engine.kind())));
  if (source.config().diff_ids != image.config.diff_ids)
    return fault("unpack " + source.where() + ": the archive has other layers than the engine says of it");
  const bool has_its_id = source.has_digest(image.id);
  if (wanted.digest == image.id && !has_its_id)
    return usage("unpack " + source.where() + ": expected the digest " + image.id + ", found " + source.digest());
  const std::vector<std::string> ids = {image.id};
  return TRY(cache.take(source, name, has_its_id ? ids : std::vector<std::string>())).entry.digest;
}

Result<std::optional<StoredImage>> look_up(EngineClient& engine, const ImageRef& image) {
  for (const auto& name : lookup_names(image))
    if (auto found = TRY(inspect_image(engine, name))) {
      TRY_VOID(check_stored_digest(*found, image, named(engine, name)));
      return std::move(*found);
    }
  return std::nullopt;
}

// A name that has another digest by now may be what is meant.
std::string other_digest_cure(const ImageRef& image) {
  return image.digest.empty() || image.name.empty() ? "" : ", or change the digest in the task";
}

std::unexpected<Error> not_there(const ImageRef& image, const std::string& tried) {
  const std::string name = to_text(image);
  return usage("find the image " + name + ": " + tried + "; get it with docker pull " + name + " or podman pull " +
               name + other_digest_cure(image));
}

}  // namespace

namespace {

// Kind usage when the engine has none, or another than the digest says.
Result<StoredImage> stored_image(EngineClient& engine, const ImageRef& image) {
  auto found = look_up(engine, image);
  if (found && *found) return std::move(**found);
  if (!found && found.error().kind != Error::Kind::usage) return std::unexpected(found.error());
  const std::string why =
      found ? std::string(to_text(engine.kind())) + " at " + engine.endpoint().text() + " does not have it"
            : found.error().message;
  return usage("find the image " + to_text(image) + ": " + why + "; get it with " + to_text(engine.kind()) + " pull " +
               to_text(image) + other_digest_cure(image));
}

// Podman runs as a service for who asks for it; without one that is named there is ours, for as long as it takes.
struct Reached {
  std::optional<PodmanService> service;
  EngineClient client;
};
Result<Reached> reach(ApiKind kind) {
  if (kind == ApiKind::docker || std::getenv("CONTAINER_HOST") != nullptr)
    return Reached{std::nullopt, TRY(EngineClient::connect(kind))};
  TRY_VOID(make_base_folders());
  TRY_VOID(make_root_directory(kOrderBase, 0700));
  auto service = TRY(PodmanService::start(kOrderBase, TRY(new_run_id()), TRY(our_runtime())));
  auto client = TRY(EngineClient::connect(kind, service.endpoint()));
  return Reached{std::move(service), std::move(client)};
}

}  // namespace

Result<std::string> unpack_image_of(EngineClient& engine, const ImageRef& image) {
  return unpack(engine, TRY(stored_image(engine, image)), image);
}

Result<std::string> unpack_stored_image(const ImageRef& image) {
  if (::geteuid() != 0) return fault("unpack an image: benchsand must be root; use sudo");
  std::string tried;
  for (const auto kind : {ApiKind::docker, ApiKind::podman}) {
    auto engine = reach(kind);
    std::string why = std::string(to_text(kind)) + " does not have it";
    if (!engine) {
      why = to_text(kind) + std::string(" cannot be asked (") + engine.error().message + ")";
    } else if (const auto found = look_up(engine->client, image); !found) {
      why = found.error().message;  // the other one may have it
    } else if (*found) {
      return unpack(engine->client, **found, image);
    }
    tried += (tried.empty() ? "" : ", and ") + why;
  }
  return not_there(image, tried);
}

namespace {

Result<std::string> fingerprint(const Policy& policy, const Rootfs& rootfs) {
  if (policy.image) return digest_hex(policy.image_digest);
  if (rootfs.lacking == Lacking::laid_over)
    return rootfs.path.substr(rootfs.path.rfind('/') + 1);  // an archive's own digest
  return tree_fingerprint(rootfs.dir);
}

std::string import_target(const EngineClient& engine, const std::string& tag) {
  const std::string label = url_encoded("LABEL " + std::string(kRootfsLabel) + "=" + tag);
  if (engine.kind() == ApiKind::docker)
    return engine.target("/images/create?fromSrc=-&repo=" + std::string(kRepository) + "&tag=" + tag +
                         "&changes=" + label);
  return engine.target("/images/import?reference=" + url_encoded("localhost/" + std::string(kRepository) + ":" + tag) +
                       "&changes=" + label);
}

Result<void> import(EngineClient& engine, const Rootfs& rootfs, const std::string& tag) {
  HttpRequest request{.method = "POST", .target = import_target(engine, tag), .body = {}};
  request.content_type = "application/x-tar";
  request.within_us = kLongestSilence;
  TreeTar tar = TRY(TreeTar::of(rootfs.dir));
  const auto answer =
      TRY(engine.http().upload(request, [&](char* buffer, std::size_t size) { return tar.read(buffer, size); }));
  if (answer.status != 200) return engine.refused("import the rootfs " + rootfs.path, answer);
  return {};
}

// As the engine has it; the layers are not looked at.
Result<std::string> use_as_it_is(const StoredImage& image, Policy& policy) {
  TRY_VOID(check_image(image.config, image.config.diff_ids.size(), image_architecture(),
                       "the image " + to_text(*policy.image)));
  policy.image_digest = image.id;
  for (auto& notice : image_notices(image.config, policy)) policy.notices.push_back(std::move(notice));
  return image.id;
}

// An engine would make a writable place of each volume of an image, and more of what it says; such a one is copied without all that.
bool is_more_than_files(const StoredImage& image) {
  return !image.config.volumes.empty();
}

}  // namespace

Result<std::string> image_in_engine(EngineClient& engine, Policy& policy) {
  if (policy.image && policy.image->form == ImageForm::stored) {
    const auto image = TRY(stored_image(engine, *policy.image));
    if (!is_more_than_files(image)) return use_as_it_is(image, policy);
    policy.image_digest = TRY(unpack(engine, image, *policy.image));
  }
  const auto rootfs = TRY(open_task_rootfs(policy));
  const std::string tag = TRY(fingerprint(policy, rootfs)), name = std::string(kRepository) + ":" + tag;
  if (const auto there = TRY(inspect_image(engine, name))) return there->id;
  TRY_VOID(import(engine, rootfs, tag));
  if (const auto there = TRY(inspect_image(engine, name))) return there->id;
  return fault("import the rootfs " + rootfs.path + ": " + to_text(engine.kind()) + " does not have it afterwards");
}

namespace {

struct ImportedImage {
  std::string id, name;
  std::uint64_t created = 0, size = 0;
};

// An image that was built from one of ours has inherited its label.
bool is_named_by_us(const std::string& name) {
  const std::string ours = std::string(kRepository) + ":";
  return name.starts_with(ours) || name.starts_with("localhost/" + ours);
}

Result<std::vector<ImportedImage>> imported_images(EngineClient& engine) {
  const json filters = {{"label", {kRootfsLabel}}};
  const auto answer = TRY(
      engine.call({"GET", "/images/json?filters=" + url_encoded(filters.dump()), "list the images", nullptr, {200}}));
  if (!answer.body.is_array()) return fault("list the images: the answer is no list");
  std::vector<ImportedImage> list;
  for (const auto& entry : answer.body) {
    if (!entry.is_object() || !entry.contains("Id") || !entry["Id"].is_string())
      return fault("list the images: an entry has no id");
    ImportedImage image{entry["Id"], "-", 0, 0};
    const json::json_pointer first("/RepoTags/0");
    if (entry.contains(first) && entry.at(first).is_string()) image.name = entry.at(first);
    if (!is_named_by_us(image.name)) continue;
    if (entry.contains("Created") && entry["Created"].is_number_unsigned()) image.created = entry["Created"];
    if (entry.contains("Size") && entry["Size"].is_number_unsigned()) image.size = entry["Size"];
    list.push_back(std::move(image));
  }
  return list;
}

// Not by force: an engine keeps what a container uses.
Result<bool> remove_image(EngineClient& engine, const ImportedImage& image) {
  const auto answer = TRY(engine.call(
      {"DELETE", "/images/" + url_encoded(image.id), "remove the image " + image.id, nullptr, {200, 404, 409, 500}}));
  return answer.status == 200;
}

// Its name, with or without what Podman puts before it, its tag, or the beginning of its id.
bool is_called(const ImportedImage& image, const std::string& wanted) {
  const std::string hex = image.id.substr(image.id.find(':') + 1);  // npos + 1 is 0
  const std::string tag = image.name.substr(image.name.rfind(':') + 1);
  return image.name == wanted || image.name == "localhost/" + wanted || tag == wanted ||
         (wanted.size() >= kShortestId && (hex.starts_with(wanted) || image.id.starts_with(wanted)));
}

// All of them are found before one is removed.
Result<std::string> remove_named(EngineClient& engine, const std::vector<std::string>& wanted) {
  const std::string of = to_text(engine.kind());
  const auto images = TRY(imported_images(engine));
  std::vector<ImportedImage> found;
  for (const auto& one : wanted) {
    const auto first =
        std::find_if(images.begin(), images.end(), [&](const auto& image) { return is_called(image, one); });
    if (first == images.end())
      return usage("find the image " + one + ": benchsand has put none of this name into the store of " + of +
                   "; see benchsand image ls --engine " + of);
    if (std::any_of(first + 1, images.end(), [&](const auto& image) { return is_called(image, one); }))
      return usage("find the image " + one + ": several begin so; give more of it");
    found.push_back(*first);
  }
  std::string text;
  for (const auto& image : found) {
    if (!TRY(remove_image(engine, image))) return usage("remove the image " + image.name + ": a container uses it");
    text += "removed " + image.name + "\n";
  }
  return text;
}

}  // namespace

Result<std::string> serve_engine_images(const ImageRequest& request) {
  const std::uint64_t unused_for = TRY(unused_for_us(request)) / 1'000'000;
  if (::geteuid() != 0) return fault("look at the store of " + std::string(to_text(*request.engine)) + ": use sudo");
  auto reached = TRY(reach(*request.engine));
  EngineClient& engine = reached.client;
  if (request.verb == ImageRequest::Verb::remove) return remove_named(engine, request.wanted);
  const auto now = static_cast<std::uint64_t>(::time(nullptr));
  std::string text;
  for (const auto& image : TRY(imported_images(engine))) {
    const std::string line = printable(image.name) + "  " + rounded_size(image.size) + "  made " +
                             time_ago(now > image.created ? now - image.created : 0) + "\n";
    if (request.verb == ImageRequest::Verb::list)
      text += line;
    else if (now >= image.created + unused_for)
      text += (TRY(remove_image(engine, image)) ? "removed " : "in use  ") + line;
  }
  if (text.empty()) return "nothing of benchsand in the store of " + std::string(to_text(*request.engine)) + "\n";
  return text;
}

}  // namespace benchsand
