#include "shim/engine_owner.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "shim/container_state.h"

namespace benchsand {

namespace {

constexpr const char *kOwner = "benchsand.owner", *kOwnerStart = "benchsand.owner_start", *kBoot = "benchsand.boot";
constexpr const char* kBootFile = "/proc/sys/kernel/random/boot_id";

// After a reboot every number is another's.
Result<std::string> boot_id() {
  std::string text = TRY(sys::read_file(sys::kHere, kBootFile));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::optional<std::string> text_of(const nlohmann::json& labels, const char* key) {
  if (!labels.is_object() || !labels.contains(key) || !labels[key].is_string()) return std::nullopt;
  return labels[key].get<std::string>();
}

std::optional<std::uint64_t> number_of(const std::optional<std::string>& text) {
  std::uint64_t number = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || number == 0) return std::nullopt;
  return number;
}

}  // namespace

Result<std::map<std::string, std::string>> owner_labels(const std::string& run) {
  return std::map<std::string, std::string>{{kRunLabel, run},
                                            {kOwner, std::to_string(::getpid())},
                                            {kOwnerStart, std::to_string(TRY(start_time_of(::getpid())))},
                                            {kBoot, TRY(boot_id())}};
}

// Whoever starts a container takes over the labels of its image, which its author chose, but not a name.
bool has_name_of_run(const std::string& container, const nlohmann::json& labels) {
  const auto run = text_of(labels, kRunLabel);
  return run && container.substr(container.starts_with('/') ? 1 : 0) == container_name(*run);
}

std::string container_name(const std::string& run) {
  return "benchsand-" + run;
}

Result<void> require_run(ApiKind kind, const std::string& id, const nlohmann::json& inspect, const std::string& run) {
  const nlohmann::json::json_pointer place("/Config/Labels");
  if (inspect.contains(place) && text_of(inspect[place], kRunLabel) == run) return {};
  return fault("create the container: " + std::string(to_text(kind)) + " answers with the id " + id +
               ", which is another container's: it has not the label of this run");
}

OwnerIs owner_of(const nlohmann::json& labels) {
  const auto run = text_of(labels, kRunLabel), boot = text_of(labels, kBoot);
  const auto pid = number_of(text_of(labels, kOwner)), start = number_of(text_of(labels, kOwnerStart));
  const auto this_boot = boot_id();
  if (!run || !boot || !pid || !start || !this_boot) return OwnerIs::unknown;
  if (*boot != *this_boot) return OwnerIs::dead;
  const auto found = start_time_of(static_cast<pid_t>(*pid));
  if (found) return *found == *start ? OwnerIs::alive : OwnerIs::dead;
  const auto exists = sys::exists(sys::kHere, "/proc/" + std::to_string(*pid));
  return exists && !*exists ? OwnerIs::dead : OwnerIs::unknown;
}

}  // namespace benchsand
