#include "oci/image_list.h"

#include <algorithm>
#include <array>

#include "oci/columns.h"
#include "oci/image_ref.h"
#include "oci/report.h"
#include "oci/yaml_tree.h"

namespace benchsand {

namespace {

constexpr std::size_t kDigitsShown = 12, kFewestDigits = 4;

std::vector<std::string> names_of(const ListedImage& image) {
  return image.entry ? image.entry->names : std::vector<std::string>();
}

std::string shown_names(const ListedImage& image) {
  if (!image.entry) return "(unreadable; prune removes it)";
  std::string text;
  for (const auto& name : image.entry->names) text += (text.empty() ? "" : ", ") + on_one_line(name);
  return text.empty() ? "-" : text;
}

bool is_called(const ListedImage& image, const std::string& wanted) {
  const auto names = names_of(image);
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return true;
  const std::string digits = wanted.starts_with("sha256:") ? digest_hex(wanted) : wanted;
  return digits.size() >= kFewestDigits && image.hex.starts_with(digits);
}

}  // namespace

std::string rounded_size(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  std::size_t unit = 0;
  std::uint64_t tenths = (bytes * 10 + 512) / 1024;
  for (; tenths >= 10240 && unit + 1 < kUnits.size(); ++unit) tenths = (tenths + 512) / 1024;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + kUnits[unit];
}

std::string time_ago(std::uint64_t seconds) {
  struct Step {
    std::uint64_t length;
    const char* name;
  };
  for (const auto& [length, name] : {Step{86400, "day"}, Step{3600, "hour"}, Step{60, "minute"}})
    if (const std::uint64_t count = seconds / length; count > 0)
      return std::to_string(count) + " " + name + (count == 1 ? "" : "s") + " ago";
  return "now";
}

std::string image_list(std::vector<ListedImage> images, std::uint64_t now) {
  std::stable_sort(images.begin(), images.end(), [](const auto& a, const auto& b) { return a.used > b.used; });
  std::vector<std::vector<std::string>> rows = {{"DIGEST", "SIZE", "LAST USED", "NAMES"}};
  for (const auto& image : images)
    rows.push_back({image.hex.substr(0, kDigitsShown), image.entry ? rounded_size(image.entry->bytes) : "?",
                    image.in_use ? "in use" : time_ago(now > image.used ? now - image.used : 0), shown_names(image)});
  return columns(rows);
}

Result<ListedImage> find_image(const std::vector<ListedImage>& images, const std::string& wanted) {
  std::vector<ListedImage> found;
  for (const auto& image : images)
    if (is_called(image, wanted)) found.push_back(image);
  if (found.size() == 1) return found.front();
  const std::string start = "find the image " + in_quotes(wanted) + ": ";
  if (found.empty())
    return usage(start + "no unpacked image has this name or a digest that begins so; benchsand image ls lists them");
  std::string digests;
  for (const auto& image : found) digests += (digests.empty() ? "" : ", ") + image.hex.substr(0, kDigitsShown);
  return usage(start + "there are " + std::to_string(found.size()) + ": " + digests);
}

}  // namespace benchsand
