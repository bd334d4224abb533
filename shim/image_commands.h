// `benchsand image ls|rm|prune`: the images that are unpacked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "oci/engine_endpoint.h"
#include "oci/result.h"

namespace CLI {
class App;
}

namespace benchsand {

struct ImageRequest {
  enum class Verb { list, remove, prune };
  Verb verb = Verb::list;
  std::vector<std::string> wanted;  // remove: names, or beginnings of digests
  std::string unused_for;           // prune: a time; empty: any
  std::optional<ApiKind> engine;    // what benchsand has put into this one's store, and not what is unpacked
};

void add_image_commands(CLI::App& app, const std::function<void(const ImageRequest&)>& serve);

// What there is to say. Not for an engine's store.
Result<std::string> serve_images(const ImageRequest& request);
Result<std::uint64_t> unused_for_us(const ImageRequest& request);

}  // namespace benchsand
