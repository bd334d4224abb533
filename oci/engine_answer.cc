#include "oci/engine_answer.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "oci/report.h"
#include "oci/strict_json.h"
#include "oci/text.h"

namespace benchsand {

using nlohmann::json;

namespace {

// An empty text where there is no such text.
std::string text_at(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string shortened(std::string words) {
  if (words.size() <= kLongestEngineWords) return words;
  std::size_t at = 0;
  for (std::size_t length = 1; at + length <= kLongestEngineWords; length = utf8_length(words, at)) {
    if (length == 0) break;
    at += length;
  }
  return words.substr(0, at) + "…";
}

std::string trimmed(const std::string& words) {
  const auto first = words.find_first_not_of(" \t\r\n"), last = words.find_last_not_of(" \t\r\n.");
  return first == words.npos || last == words.npos ? "" : words.substr(first, last - first + 1);
}

// MAJOR[.MINOR[.PATCH]], with what Podman adds to it left out ("4.9.4-rhel").
using Version = std::vector<unsigned>;
std::optional<Version> version_of(std::string_view text) {
  Version version;
  while (version.size() < 3) {
    unsigned number = 0;
    const auto [end, failed] = std::from_chars(text.begin(), text.end(), number);
    if (failed != std::errc()) return std::nullopt;
    version.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  if (!text.empty() && text.front() != '-' && text.front() != '+') return std::nullopt;
  version.resize(3);
  return version;
}

std::string text_of(const Version& version, std::size_t parts) {
  std::string text = std::to_string(version[0]);
  for (std::size_t i = 1; i < parts; ++i) text += "." + std::to_string(version[i]);
  return text;
}

// Of those that call themselves so; null when there is none.
const json* component(const json& answer, const std::string& name) {
  const auto list = answer.find("Components");
  if (list == answer.end() || !list->is_array()) return nullptr;
  for (const json& entry : *list)
    if (text_at(entry, "Name") == name) return &entry;
  return nullptr;
}

constexpr const char* kPodmanName = "Podman Engine";

std::unexpected<Error> no_version(ApiKind kind, const std::string& where) {
  return fault("ask " + where + " for its version: the answer is not that of " + to_text(kind));
}

Result<AgreedVersion> agree_with_docker(const json& answer, const std::string& where) {
  if (component(answer, kPodmanName))
    return usage(where +
                 " is Podman's API in Docker's manner, which has no place for a runtime (cure: --engine podman)");
  const std::string engine = text_at(answer, "Version"), newest = text_at(answer, "ApiVersion"),
                    oldest = text_at(answer, "MinAPIVersion");
  const auto from = version_of(oldest.empty() ? newest : oldest), to = version_of(newest);
  if (engine.empty() || !from || !to) return no_version(ApiKind::docker, where);
  const Version our_oldest = *version_of(kOldestDockerApi), our_newest = *version_of(kNewestDockerApi);
  if (*to < our_oldest || *from > our_newest)
    return fault("docker " + on_one_line(engine) + " at " + where + " speaks the API versions " + on_one_line(oldest) +
                 " to " + on_one_line(newest) + ", benchsand " + kOldestDockerApi + " to " + kNewestDockerApi +
                 (*to < our_oldest ? " (cure: Docker 20.10 or newer)" : " (cure: a newer benchsand)"));
  return AgreedVersion{on_one_line(engine), text_of(std::min(*to, our_newest), 2)};
}

Result<AgreedVersion> agree_with_podman(const json& answer, const std::string& where) {
  const json* podman = component(answer, kPodmanName);
  const auto details = podman ? podman->find("Details") : answer.end();
  if (!podman || details == podman->end()) return no_version(ApiKind::podman, where);
  const std::string engine = text_at(*podman, "Version"), newest = text_at(*details, "APIVersion"),
                    oldest = text_at(*details, "MinAPIVersion");
  const auto from = version_of(oldest.empty() ? newest : oldest), to = version_of(newest);
  if (engine.empty() || !from || !to) return no_version(ApiKind::podman, where);
  const Version ours = *version_of(kPodmanApi);
  if (*to < ours || *from > ours)
    return fault("podman " + on_one_line(engine) + " at " + where + " speaks the API versions " + on_one_line(oldest) +
                 " to " + on_one_line(newest) + ", benchsand " + kPodmanApi +
                 (*to < ours ? " (cure: Podman 4 or newer)" : " (cure: a newer benchsand)"));
  return AgreedVersion{on_one_line(engine), text_of(*to, 3)};
}

}  // namespace

std::string engine_words(const std::string& body) {
  const auto parsed = parse_strict_json(body, "the answer");
  const json answer = parsed ? *parsed : json();
  std::string words = text_at(answer, "message");
  if (const std::string cause = text_at(answer, "cause"); words.empty())
    words = cause;
  else if (!words.contains(cause))
    words += ": " + cause;
  if (words.empty()) words = body;
  words = trimmed(words);
  return words.empty() ? "nothing" : on_one_line(shortened(words));
}

Result<AgreedVersion> agree_on_version(ApiKind kind, const json& answer, const std::string& where) {
  switch (kind) {
    case ApiKind::docker:
      return agree_with_docker(answer, where);
    case ApiKind::podman:
      return agree_with_podman(answer, where);
  }
  return no_version(kind, where);
}

}  // namespace benchsand
