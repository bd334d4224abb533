#include "shim/image_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "oci/yaml_tree.h"
#include "shim/image_look.h"
#include "shim/tree_writer.h"

namespace benchsand {

namespace {

constexpr std::size_t kMostNames = 32;
constexpr const char* kEntry = "image.json";
constexpr const char* kRoot = "rootfs";
constexpr const char* kUsed = "used";  // locked by who uses it; its time is when that was last

std::string list_of(const std::vector<std::string>& names, std::uint64_t count) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + in_quotes(name);
  return count > names.size() ? list + " and " + std::to_string(count - names.size()) + " more" : list;
}

std::vector<std::string> left_out_notices(const LeftOut& left_out) {
  std::vector<std::string> notices;
  if (left_out.special_count > 0)
    notices.push_back("image: devices, sockets and FIFOs are left out: " +
                      list_of(left_out.special, left_out.special_count));
  if (left_out.capabilities_count > 0)
    notices.push_back("image: file capabilities are left out, of " +
                      list_of(left_out.with_capabilities, left_out.capabilities_count));
  std::vector<std::string> names;
  for (const auto& [name, count] : left_out.attributes)
    if (name != "security.capability") names.push_back(name);
  if (!names.empty()) notices.push_back("image: extended attributes are left out: " + list_of(names, names.size()));
  return notices;
}

Result<void> expect_digest(const ImageSource& source, const std::string& what, const std::string& expected,
                           const std::string& found) {
  if (expected == found) return {};
  return usage("unpack " + source.where() + ": " + what + ": expected the digest " + expected + ", found " + found +
               "; get the image again");
}

Result<void> apply_layer(TreeWriter& writer, const ImageSource& source, const ImageSource::Layer& layer) {
  TarReader tar = TRY(TarReader::open(layer.file, source.where() + ": the layer " + layer.name, TreeBounds{}.bytes));
  TRY_VOID(writer.apply(tar, Layering::whiteouts));
  const auto found = TRY(tar.finish());
  if (layer.digest) TRY_VOID(expect_digest(source, "the layer " + layer.name, *layer.digest, "sha256:" + found.file));
  return expect_digest(source, "the layer " + layer.name + " as plain tar", layer.diff_id, "sha256:" + found.plain);
}

// A path may be of any bytes.
std::string text_of(const ImageEntry& entry) {
  return image_entry_json(entry).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Whoever asked for it by this name will find it in the list.
Result<void> note_name(ImageEntry& entry, const std::string& path, const std::string& name) {
  if (name.empty() || std::find(entry.names.begin(), entry.names.end(), name) != entry.names.end()) return {};
  entry.names.push_back(name);
  if (entry.names.size() > kMostNames) entry.names.erase(entry.names.begin());
  return sys::replace_file(path + "/" + kEntry, text_of(entry), 0600);
}

}  // namespace

Result<ImageCache> ImageCache::make() {
  return ImageCache(TRY(UnpackCache::make(kImageCache, "image")));
}

Result<std::optional<ImageCache>> ImageCache::find() {
  auto cache = TRY(UnpackCache::find(kImageCache, "image"));
  if (!cache) return std::nullopt;
  return ImageCache(std::move(*cache));
}

Result<std::optional<UsedImage>> ImageCache::use(const std::string& digest, const std::string& name) const {
  const std::string hex = digest_hex(digest), path = cache_.path_of(hex);
  const auto top = TRY(cache_.open(hex));
  if (!top) return std::nullopt;
  UsedImage used;
  used.in_use = TRY(sys::openat(top->get(), kUsed, O_RDWR | O_NOFOLLOW));
  TRY_VOID(sys::flock(used.in_use, path, false));
  // Who removes an image renames it first.
  const auto named = sys::fstatat(cache_.dir().get(), hex, AT_SYMLINK_NOFOLLOW);
  if (!named || named->st_ino != TRY(sys::fstat(*top, path)).st_ino) return std::nullopt;
  if (::futimens(used.in_use.get(), nullptr) != 0) return sys_error("utimens", path, errno);
  used.entry = TRY(parse_image_entry(TRY(sys::read_file(top->get(), kEntry)), path + "/" + kEntry));
  if (used.entry.digest != digest)
    return fault("use the image " + path + ": its " + kEntry + " is of " + used.entry.digest);
  TRY_VOID(note_name(used.entry, path, name));
  used.path = path + "/" + kRoot;
  used.rootfs = TRY(sys::open_directory(top->get(), kRoot));
  return used;
}

Result<std::optional<UsedImage>> ImageCache::use_by_id(const std::string& id, const std::string& name) const {
  if (auto ready = TRY(use(id, name))) return ready;
  for (const auto& image : TRY(list()))
    if (image.entry && std::find(image.entry->ids.begin(), image.entry->ids.end(), id) != image.entry->ids.end())
      return use(image.entry->digest, name);
  return std::nullopt;
}

Result<UsedImage> ImageCache::take(const ImageSource& source, const std::string& name,
                                   const std::vector<std::string>& ids) const {
  const std::string hex = digest_hex(source.digest());
  if (auto ready = TRY(use(source.digest(), name))) return std::move(*ready);
  // One at a time: of two runs that want the same new image, the second finds it unpacked.
  const Fd alone = TRY(sys::openat(cache_.dir().get(), ".", O_RDONLY | O_DIRECTORY));
  TRY_VOID(sys::flock(alone, kImageCache, true));
  if (auto ready = TRY(use(source.digest(), name))) return std::move(*ready);
  const auto unpacking = TRY(cache_.begin(hex));
  ImageEntry entry;
  entry.ids = ids;
  if (auto done = unpack(unpacking, source, std::move(entry)); !done) {
    TRY_VOID(cache_.drop(unpacking));
    return std::unexpected(done.error());
  }
  static_cast<void>(TRY(cache_.keep(unpacking, hex)));
  if (auto ready = TRY(use(source.digest(), name))) return std::move(*ready);
  return fault("use the unpacked image " + cache_.path_of(hex) + ": it was removed meanwhile");
}

Result<void> ImageCache::unpack(const UnpackCache::Unpacking& unpacking, const ImageSource& source,
                                ImageEntry entry) const {
  const int top = unpacking.top.get();
  TRY_VOID(sys::mkdirat(top, kRoot, 0755));
  const Fd root = TRY(sys::open_directory(top, kRoot));
  TreeWriter writer(root);
  for (const auto& layer : TRY(source.layers(unpacking.top))) TRY_VOID(apply_layer(writer, source, layer));
  if (::fchmod(root.get(), 0755) != 0) return sys_error("chmod", unpacking.name, errno);
  entry.digest = source.digest();
  entry.unpacked = sys::utc_now();
  entry.bytes = writer.bytes();
  entry.entries = writer.entries();
  entry.notices = left_out_notices(writer.left_out());
  auto findings = look_over_image(root);
  for (const auto& path : writer.left_out().special)
    if (is_engine_socket(path)) findings.engine_sockets.add(path);
  for (auto& notice : lint_notices(findings)) entry.notices.push_back(std::move(notice));
  entry.config = source.config();
  TRY_VOID(sys::create_file(top, kUsed, "", 0600));
  return sys::create_file(top, kEntry, text_of(entry), 0600);
}

// Whatever cannot be read is listed all the same, so that it can be removed.
ListedImage ImageCache::listed(const std::string& hex) const {
  ListedImage image{hex, {}, 0, false};
  const auto top = sys::open_directory(cache_.dir().get(), hex);
  const auto used = top ? sys::openat(top->get(), kUsed, O_RDWR | O_NOFOLLOW) : Result<Fd>(usage(""));
  if (!used) return image;
  if (const auto facts = sys::fstat(*used, hex)) image.used = static_cast<std::uint64_t>(facts->st_mtime);
  const auto alone = sys::try_flock(*used, hex);
  image.in_use = alone && !*alone;
  const auto text = sys::read_file(top->get(), kEntry);
  auto entry = text ? parse_image_entry(*text, hex) : Result<ImageEntry>(usage(""));
  if (entry) image.entry = std::move(*entry);
  return image;
}

Result<std::vector<ListedImage>> ImageCache::list() const {
  std::vector<ListedImage> images;
  for (const auto& name : TRY(sys::list_directory(cache_.dir().get(), ".")))
    if (is_digest("sha256:" + name)) images.push_back(listed(name));
  return images;
}

Result<bool> ImageCache::remove(const std::string& hex) const {
  const auto top = TRY(cache_.open(hex));
  if (!top) return false;
  const auto used = sys::openat(top->get(), kUsed, O_RDWR | O_NOFOLLOW);
  if (!used && used.error().error_number != ENOENT) return std::unexpected(used.error());
  if (used && !TRY(sys::try_flock(*used, hex))) return false;
  // Locked as an unpacking is, so that gc leaves it to us, and under a name that gc clears should we be killed.
  TRY_VOID(sys::flock(*top, hex, true));
  const std::string aside = hex + "." + TRY(sys::random_hex(6));
  TRY_VOID(sys::renameat(cache_.dir().get(), hex, aside));
  TRY_VOID(sys::remove_tree(cache_.dir().get(), aside));
  return true;
}

Result<std::vector<std::string>> collect_image_garbage() {
  auto lines = TRY(UnpackCache::collect_older(kImageCache));
  const auto cache = TRY(ImageCache::find());
  if (!cache) return lines;
  for (auto& line : TRY(cache->collect_garbage())) lines.push_back(std::move(line));
  return lines;
}

}  // namespace benchsand
