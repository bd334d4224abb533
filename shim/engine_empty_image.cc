#include "shim/engine_empty_image.h"

namespace benchsand {

namespace {

constexpr const char *kRepository = "benchsand-rootfs", *kTag = "empty", *kName = "benchsand-rootfs:empty";
constexpr std::size_t kEmptyTar = 10240;  // a tar archive of nothing is zeros, and this long

// Podman finds a short name or does not, as its registries.conf has it.
std::string full_name(const EngineClient& engine) {
  return (engine.kind() == ApiKind::podman ? "localhost/" : "") + std::string(kName);
}

std::string import_target(const EngineClient& engine) {
  const std::string label = url_encoded("LABEL benchsand.rootfs=empty");
  if (engine.kind() == ApiKind::docker)
    return engine.target(std::string("/images/create?fromSrc=-&repo=") + kRepository + "&tag=" + kTag +
                         "&changes=" + label);
  return engine.target("/images/import?reference=" + url_encoded(full_name(engine)) + "&changes=" + label);
}

Result<std::string> id_of(EngineClient& engine) {
  const auto answer = TRY(engine.call({"GET",
                                       "/images/" + url_encoded(full_name(engine)) + "/json",
                                       "look for the image " + std::string(kName),
                                       nullptr,
                                       {200, 404}}));
  if (answer.status == 404) return std::string();
  if (!answer.body.is_object() || !answer.body.contains("Id") || !answer.body["Id"].is_string())
    return fault("look for the image " + std::string(kName) + ": the answer has no id");
  return answer.body["Id"].get<std::string>();
}

}  // namespace

Result<std::string> empty_image(EngineClient& engine) {
  if (auto id = TRY(id_of(engine)); !id.empty()) return id;
  HttpRequest request{.method = "POST", .target = import_target(engine), .body = {}};
  request.content_type = "application/x-tar";
  std::size_t left = kEmptyTar;
  const auto answer = TRY(engine.http().upload(request, [&](char* buffer, std::size_t size) -> Result<std::size_t> {
    const std::size_t n = std::min(size, left);
    std::fill_n(buffer, n, '\0');
    left -= n;
    return n;
  }));
  if (answer.status != 200) return engine.refused("import the image " + std::string(kName), answer);
  auto id = TRY(id_of(engine));
  if (id.empty())
    return fault("import the image " + std::string(kName) + ": it is not there afterwards: " + answer.body);
  return id;
}

}  // namespace benchsand
