#include "shim/image_commands.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <memory>

#include "oci/image_list.h"
#include "oci/units.h"
#include "shim/image_cache.h"

namespace benchsand {

namespace {

std::uint64_t seconds_now() {
  return static_cast<std::uint64_t>(::time(nullptr));
}

Result<std::string> remove_all(const ImageCache& cache, const std::vector<std::string>& wanted) {
  const auto images = TRY(cache.list());
  std::vector<ListedImage> found;
  for (const auto& one : wanted) found.push_back(TRY(find_image(images, one)));
  std::string text;
  for (const auto& image : found) {
    if (!TRY(cache.remove(image.hex))) return usage("remove the image " + image.hex + ": a run uses it");
    text += "removed " + image.hex + "\n";
  }
  return text;
}

Result<std::string> prune(const ImageCache& cache, std::uint64_t unused_for) {
  std::string text;
  std::uint64_t bytes = 0;
  for (const auto& image : TRY(cache.list())) {
    if (image.in_use || seconds_now() < image.used + unused_for / 1'000'000 || !TRY(cache.remove(image.hex))) continue;
    bytes += image.entry ? image.entry->bytes : 0;
    text += "removed " + image.hex + "\n";
  }
  return text.empty() ? "nothing to remove\n" : text + rounded_size(bytes) + " in all\n";
}

}  // namespace

void add_image_commands(CLI::App& app, const std::function<void(const ImageRequest&)>& serve) {
  CLI::App* image = app.add_subcommand("image", "the images that are unpacked: list them, remove them");
  image->require_subcommand(0, 1);
  image->allow_extras(false);
  const auto request = std::make_shared<ImageRequest>();
  const auto engine = std::make_shared<std::string>();
  const auto add = [&](const char* name, const char* help, ImageRequest::Verb verb) {
    CLI::App* command = image->add_subcommand(name, help);
    command->callback([=] {
      request->verb = verb;
      for (const auto kind : {ApiKind::docker, ApiKind::podman})
        if (*engine == to_text(kind)) request->engine = kind;
      serve(*request);
    });
    return command;
  };
  CLI::App* ls = add("ls", "digest, size, last use and names of each", ImageRequest::Verb::list);
  CLI::App* rm = add("rm", "remove images that no run uses", ImageRequest::Verb::remove);
  rm->add_option("IMAGE", request->wanted, "a name that image ls shows, or the beginning of a digest")->required();
  CLI::App* prune = add("prune", "remove every image that no run uses", ImageRequest::Verb::prune);
  prune->add_option("--unused-for", request->unused_for, "only those that no run has used for so long: 24h");
  for (CLI::App* command : {ls, rm, prune})
    command->add_option("--engine", *engine, "what benchsand has put into the store of docker or podman")
        ->check(CLI::IsMember({"docker", "podman"}));
  image->allow_extras();  // only so that an unknown one can be named
  image->callback([image] {
    if (!image->get_subcommands().empty()) return;
    const auto words = image->remaining();
    throw CLI::ParseError(
        (words.empty() ? "no command of image was given" : "unknown command '" + words.front() + "' of image") +
            "; there are ls, rm and prune",
        CLI::ExitCodes::RequiredError);
  });
}

Result<std::uint64_t> unused_for_us(const ImageRequest& request) {
  if (request.unused_for.empty()) return 0;
  const auto time = parse_quantity(request.unused_for, Unit::duration_us);
  if (!time) return usage("--unused-for: " + time.message());
  return time->usable ? time->value : 0;
}

Result<std::string> serve_images(const ImageRequest& request) {
  const std::uint64_t unused_for = TRY(unused_for_us(request));
  if (::geteuid() != 0) return fault("look at unpacked images: they are root's alone; use sudo");
  const auto cache = TRY(ImageCache::make());
  switch (request.verb) {
    case ImageRequest::Verb::list:
      return image_list(TRY(cache.list()), seconds_now());
    case ImageRequest::Verb::remove:
      return remove_all(cache, request.wanted);
    case ImageRequest::Verb::prune:
      return prune(cache, unused_for);
  }
  std::abort();  // not a value of the enumeration
}

}  // namespace benchsand
