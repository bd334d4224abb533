#include "oci/image_ref.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "oci/yaml_reader.h"
#include "oci/yaml_tree.h"

namespace benchsand {

namespace {

constexpr std::string_view kSha256 = "sha256:", kOci = "oci:", kArchive = "docker-archive:";
constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

bool is_hex(std::string_view text, std::size_t length) {
  return text.size() == length && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// HOST or HOST:PORT, where an IPv6 address stands in brackets.
bool is_registry(std::string_view text) {
  const std::size_t colon = text.find(':', text.starts_with('[') ? std::min(text.find(']'), text.size()) : 0);
  const std::string_view host = text.substr(0, colon);
  if (host.empty() || host.front() == '.' || host.front() == '-' ||
      host.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]") !=
          std::string_view::npos)
    return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view port = text.substr(colon + 1);
  return !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos;
}

// As registries have it: what a separator follows is part of the grammar, but no engine refuses more than this does.
bool is_repository(std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::string_view first = name.substr(0, slash);
  if (slash != std::string_view::npos &&
      (first.find_first_of(".:") != std::string_view::npos || first == "localhost")) {
    if (!is_registry(first)) return false;
    name.remove_prefix(slash + 1);
  }
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find('/', start), name.size());
    const std::string_view part = name.substr(start, end - start);
    if (part.empty() || kLower.find(part.front()) == std::string_view::npos ||
        kLower.find(part.back()) == std::string_view::npos ||
        part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") != std::string_view::npos)
      return false;
    start = end + 1;
  }
  return true;
}

bool is_tag(std::string_view tag) {
  return !tag.empty() && tag.size() <= 128 && kWord.find(tag.front()) != std::string_view::npos &&
         tag.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
             std::string_view::npos;
}

// Where a tag begins: behind the last slash, for a colon before it is a registry's port.
std::size_t tag_colon(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return name.find(':', slash == std::string_view::npos ? 0 : slash + 1);
}

Result<std::string> read_name(const std::string& name, bool with_latest) {
  const std::size_t colon = tag_colon(name);
  const std::string repository = name.substr(0, colon);
  if (repository.size() > 255 || !is_repository(repository))
    return usage(in_quotes(repository) + " is no name of an image, such as python or example.org/team/python");
  if (colon == std::string::npos) return with_latest ? name + ":latest" : name;
  if (!is_tag(std::string_view(name).substr(colon + 1)))
    return usage(in_quotes(name.substr(colon + 1)) + " is no tag of an image, such as 3.12");
  return name;
}

// "PATH" or "PATH:NAME".
Result<ImageRef> read_placed(ImageForm form, const std::string& text, std::string digest) {
  const std::size_t colon = text.find(':');
  ImageRef image{form, text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1),
                 std::move(digest)};
  if (image.path.empty()) return usage("the path is missing");
  if (image.path.find('\0') != std::string::npos || image.name.find('\0') != std::string::npos)
    return usage("text cannot hold a NUL byte");
  if (colon != std::string::npos && image.name.empty()) return usage("nothing stands behind the colon");
  if (form == ImageForm::docker_archive && !image.name.empty()) image.name = TRY(read_name(image.name, true));
  return image;
}

// "ocl:./x", which is no name of an image whatever its tag. A short word with a tag that can be one is a name.
std::string misspelt_form(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return "";
  std::string word = text.substr(0, colon + 1);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string archive(kArchive), meant = did_you_mean(word, {std::string(kOci), archive});
  const bool is_archive = !did_you_mean(word, {archive}).empty();
  if (meant.empty() || (!is_archive && read_name(text, true))) return "";
  return in_quotes(text.substr(0, colon + 1)) + " is no form of an image" + meant;
}

}  // namespace

bool is_digest(const std::string& text) {
  return text.starts_with(kSha256) && is_hex(std::string_view(text).substr(kSha256.size()), 64);
}

std::string digest_hex(const std::string& digest) {
  return digest.substr(kSha256.size());
}

Result<ImageRef> parse_image_ref(const std::string& text) {
  std::string rest = text, digest;
  if (const std::size_t at = text.rfind('@'); at != std::string::npos) {
    digest = text.substr(at + 1);
    if (!is_digest(digest))
      return usage(in_quotes(digest) + " is no digest: sha256: and 64 hexadecimal digits in lower case");
    rest.resize(at);
  }
  if (rest.starts_with(kOci)) return read_placed(ImageForm::oci, rest.substr(kOci.size()), digest);
  if (rest.starts_with(kArchive)) return read_placed(ImageForm::docker_archive, rest.substr(kArchive.size()), digest);
  for (const std::string_view other :
       {"docker://", "docker-daemon:", "containers-storage:", "oci-archive:", "dir:", "http:", "https:", "file:"})
    if (rest.starts_with(other))
      return usage(in_quotes(std::string(other)) +
                   " is no form of an image here; there are NAME[:TAG] of Docker or Podman, oci:DIR, oci:FILE and "
                   "docker-archive:FILE");
  if (const std::string meant = misspelt_form(rest); !meant.empty()) return usage(meant);
  if (digest.empty() && is_digest(rest)) return ImageRef{ImageForm::stored, "", "", rest};
  return ImageRef{ImageForm::stored, "", TRY(read_name(rest, digest.empty())), digest};
}

std::string to_text(const ImageRef& image) {
  const std::string pin = image.digest.empty() ? "" : "@" + image.digest;
  const std::string name = image.name.empty() ? "" : ":" + image.name;
  switch (image.form) {
    case ImageForm::stored:
      return image.name.empty() ? image.digest : image.name + pin;
    case ImageForm::oci:
      return std::string(kOci) + image.path + name + pin;
    case ImageForm::docker_archive:
      return std::string(kArchive) + image.path + name + pin;
  }
  std::abort();  // not a value of the enumeration
}

}  // namespace benchsand
