#include "shim/tree_writer.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

#include "oci/yaml_tree.h"

namespace benchsand {

namespace {

constexpr std::string_view kWhiteout = ".wh.", kWhiteoutMeta = ".wh..wh.", kOpaque = ".wh..wh..opq";
constexpr std::size_t kMostNamed = 8, kMostAttributes = 32;

std::string joined(const std::vector<std::string>& parts) {
  std::string path;
  for (const auto& part : parts) path += (path.empty() ? "" : "/") + part;
  return path;
}

timespec modification_time(archive_entry* entry) {
  if (!archive_entry_mtime_is_set(entry)) return {};
  return {archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)};
}

mode_t permissions(archive_entry* entry) {
  return static_cast<mode_t>(archive_entry_perm(entry)) & 07777;
}

// -1 would mean to leave the owner as it is.
std::optional<uid_t> id_of(la_int64_t number) {
  if (number < 0 || number >= 0xffffffff) return std::nullopt;
  return static_cast<uid_t>(number);
}

void note(std::vector<std::string>& names, std::uint64_t& count, const std::string& path) {
  if (++count <= kMostNamed) names.push_back("/" + path);
}

Result<std::optional<struct stat>> look_at(const Fd& parent, const std::string& name) {
  const auto facts = sys::fstatat(parent.get(), name, AT_SYMLINK_NOFOLLOW);
  if (facts) return *facts;
  if (facts.error().error_number == ENOENT) return std::nullopt;
  return std::unexpected(facts.error());
}

Result<void> write_at(const Fd& file, const TarReader::Piece& piece, const std::string& path) {
  for (std::size_t done = 0; done < piece.bytes.size();) {
    const ssize_t n = ::pwrite(file.get(), piece.bytes.data() + done, piece.bytes.size() - done,
                               static_cast<off_t>(piece.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("write", path, errno);
    done += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace

std::unexpected<Error> TreeWriter::refuse(const std::string& name, const std::string& why) const {
  return usage("unpack " + what_ + ": its entry " + in_quotes(name) + " " + why);
}

Result<void> TreeWriter::apply(TarReader& tar, Layering layering) {
  what_ = tar.what();
  own_.clear();
  hidden_inside_.clear();
  directory_times_.clear();
  while (archive_entry* entry = TRY(tar.next())) {
    if (++entries_ > bounds_.entries)
      return usage("unpack " + what_ + ": more than " + std::to_string(bounds_.entries) + " entries");
    TRY_VOID(apply_entry(tar, entry, layering));
  }
  return set_directory_times();
}

Result<void> TreeWriter::apply_entry(TarReader& tar, archive_entry* entry, Layering layering) {
  const char* given = archive_entry_pathname(entry);
  if (!given) return usage("unpack " + what_ + ": an entry without a usable name");
  auto parts = TRY(components(given));
  // The top is the directory that benchsand made, whatever the archive says of it: a symbolic link in its place would make what
  // it leads to on this host the root file system.
  if (parts.empty()) {
    if (archive_entry_filetype(entry) == AE_IFDIR && !archive_entry_hardlink(entry)) return {};
    return refuse(given, "is the top of the tree and not a directory; make the archive of a directory's content");
  }
  const bool is_meta =
      std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.starts_with(kWhiteoutMeta); });
  if (layering == Layering::whiteouts && (is_meta || parts.back().starts_with(kWhiteout))) return whiteout(parts);
  const Place place = TRY(find_place(std::move(parts), Parents::made));
  TRY_VOID(put(tar, entry, place));
  own_.emplace(place.parent_inode, place.name);
  return {};
}

Result<std::vector<std::string>> TreeWriter::components(const std::string& given) const {
  std::vector<std::string> parts;
  if (given.size() > kLongestEntry)
    return refuse(given.substr(0, 64) + "…", "has a name of more than " + std::to_string(kLongestEntry) + " bytes");
  for (std::size_t start = 0; start <= given.size();) {
    const std::size_t end = std::min(given.find('/', start), given.size());
    const std::string part = given.substr(start, end - start);
    start = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse(given, "leads upward with \"..\"");
    if (part.size() > kLongestName)
      return refuse(given.substr(0, 64) + "…", "has a part of more than " + std::to_string(kLongestName) + " bytes");
    parts.push_back(part);
  }
  if (parts.size() > kDeepestEntry)
    return refuse(given.substr(0, 64) + "…", "lies deeper than " + std::to_string(kDeepestEntry) + " directories");
  return parts;
}

Result<Fd> TreeWriter::open_directory(const std::string& path) const {
  if (path.empty()) return sys::open_directory(top_.get(), ".");
  auto opened = sys::openat2_in_root(top_.get(), path, O_RDONLY | O_DIRECTORY, sys::Links::refused);
  if (opened || opened.error().error_number != ELOOP) return opened;
  return open_through_links(path);
}

// Images have /lib as a link to usr/lib. Links to ever deeper places would make a tree that nothing can walk any more.
Result<Fd> TreeWriter::open_through_links(const std::string& path) const {
  Fd opened = TRY(sys::openat2_in_root(top_.get(), path, O_RDONLY | O_DIRECTORY, sys::Links::followed));
  const auto depth = [](const Fd& fd) -> Result<std::ptrdiff_t> {
    const std::string real = TRY(sys::readlinkat(sys::kHere, "/proc/self/fd/" + std::to_string(fd.get())));
    return std::count(real.begin(), real.end(), '/');
  };
  if (TRY(depth(opened)) - TRY(depth(top_)) > static_cast<std::ptrdiff_t>(kDeepestEntry))
    return refuse(path, "leads deeper than " + std::to_string(kDeepestEntry) + " directories");
  return opened;
}

Result<void> TreeWriter::make_directories(const std::string& path) {
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string prefix = path.substr(0, end), above = start == 0 ? "" : path.substr(0, start - 1);
    const auto opened = open_directory(prefix);
    if (!opened && opened.error().error_number != ENOENT) return std::unexpected(opened.error());
    if (!opened) {
      const Fd parent = TRY(open_directory(above));
      const auto made = sys::mkdirat(parent.get(), path.substr(start, end - start), 0755);
      if (!made && made.error().error_number == EEXIST)
        return refuse(path, "goes through " + in_quotes(prefix) + ", a symbolic link that leads nowhere");
      TRY_VOID(made);
    }
    start = end + 1;
  }
  return {};
}

// Looked for, and not there: a place without a parent.
Result<TreeWriter::Place> TreeWriter::find_place(std::vector<std::string> parts, Parents parents) {
  Place place;
  place.path = joined(parts);
  place.name = std::move(parts.back());
  parts.pop_back();
  const std::string above = joined(parts);
  auto opened = open_directory(above);
  if (!opened && opened.error().error_number == ENOENT && parents == Parents::made) {
    TRY_VOID(make_directories(above));
    opened = open_directory(above);
  }
  if (!opened) {
    const int why = opened.error().error_number;
    if (parents == Parents::looked_for && (why == ENOENT || why == ENOTDIR)) return place;
    if (why == ENOTDIR) return refuse(place.path, "lies below a file");
    if (why == ELOOP) return refuse(place.path, "lies behind symbolic links that lead in a circle");
    return std::unexpected(opened.error());
  }
  place.parent = std::move(*opened);
  place.parent_inode = TRY(sys::fstat(place.parent, above)).st_ino;
  return place;
}

Result<void> TreeWriter::clear(const Place& place, bool for_directory) {
  const auto facts = TRY(look_at(place.parent, place.name));
  if (!facts || (for_directory && S_ISDIR(facts->st_mode))) return {};
  return remove(place.parent, place.name);
}

Result<void> TreeWriter::put(TarReader& tar, archive_entry* entry, const Place& place) {
  if (const char* target = archive_entry_hardlink(entry)) return put_link(target, place);
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return put_file(tar, entry, place);
    case AE_IFDIR:
      return put_directory(entry, place);
    case AE_IFLNK:
      return put_symlink(entry, place);
    case AE_IFCHR:
    case AE_IFBLK:
    case AE_IFIFO:
    case AE_IFSOCK:
      return leave_out(place);
    default:
      return refuse(place.path, "is of a type that is unknown");
  }
}

Result<void> TreeWriter::put_file(TarReader& tar, archive_entry* entry, const Place& place) {
  const la_int64_t said = archive_entry_size(entry);
  const std::uint64_t size = said < 0 ? 0 : static_cast<std::uint64_t>(said);
  if (size > bounds_.bytes || bytes_ > bounds_.bytes - size)
    return usage("unpack " + what_ + ": its files have more than " + std::to_string(bounds_.bytes) + " bytes");
  bytes_ += size;
  TRY_VOID(clear(place, false));
  const Fd file = TRY(sys::openat(place.parent.get(), place.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  for (TarReader::Piece piece; TRY(tar.read(piece));) {
    if (piece.offset > size || piece.bytes.size() > size - piece.offset)
      return refuse(place.path, "holds more than its header says");
    TRY_VOID(write_at(file, piece, place.path));
  }
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) return sys_error("ftruncate", place.path, errno);
  TRY_VOID(put_attributes(file, entry, place));
  const std::array<timespec, 2> times{modification_time(entry), modification_time(entry)};
  if (::futimens(file.get(), times.data()) != 0) return sys_error("utimens", place.path, errno);
  return {};
}

Result<void> TreeWriter::put_directory(archive_entry* entry, const Place& place) {
  TRY_VOID(clear(place, true));
  const auto made = sys::mkdirat(place.parent.get(), place.name, 0700);
  if (!made && made.error().error_number != EEXIST) return made;
  const Fd directory = TRY(sys::open_directory(place.parent.get(), place.name));
  TRY_VOID(put_attributes(directory, entry, place));
  directory_times_[place.path] = modification_time(entry);  // what comes into it would change it again
  return {};
}

Result<void> TreeWriter::put_symlink(archive_entry* entry, const Place& place) {
  const char* target = archive_entry_symlink(entry);
  if (!target || *target == '\0') return refuse(place.path, "is a symbolic link to nothing");
  const auto uid = id_of(archive_entry_uid(entry)), gid = id_of(archive_entry_gid(entry));
  if (!uid || !gid) return refuse(place.path, "has an owner that no system has");
  TRY_VOID(clear(place, false));
  if (::symlinkat(target, place.parent.get(), place.name.c_str()) != 0) return sys_error("symlink", place.path, errno);
  if (::fchownat(place.parent.get(), place.name.c_str(), *uid, *gid, AT_SYMLINK_NOFOLLOW) != 0)
    return sys_error("chown", place.path, errno);
  const std::array<timespec, 2> times{modification_time(entry), modification_time(entry)};
  if (::utimensat(place.parent.get(), place.name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0)
    return sys_error("utimens", place.path, errno);
  return {};
}

Result<void> TreeWriter::put_link(const std::string& target, const Place& place) {
  auto parts = TRY(components(target));
  if (parts.empty()) return refuse(place.path, "is a link to the top of the tree");
  const Place there = TRY(find_place(std::move(parts), Parents::looked_for));
  const auto facts = there.parent ? TRY(look_at(there.parent, there.name)) : std::nullopt;
  if (!facts) return refuse(place.path, "is a link to " + in_quotes(target) + ", which is not there");
  if (S_ISDIR(facts->st_mode)) return refuse(place.path, "is a link to the directory " + in_quotes(target));
  if (there.parent_inode == place.parent_inode && there.name == place.name) return {};
  TRY_VOID(clear(place, false));
  if (::linkat(there.parent.get(), there.name.c_str(), place.parent.get(), place.name.c_str(), 0) != 0)
    return sys_error("link", place.path, errno);
  return {};
}

Result<void> TreeWriter::put_attributes(const Fd& file, archive_entry* entry, const Place& place) {
  const auto uid = id_of(archive_entry_uid(entry)), gid = id_of(archive_entry_gid(entry));
  if (!uid || !gid) return refuse(place.path, "has an owner that no system has");
  if (::fchown(file.get(), *uid, *gid) != 0) return sys_error("chown", place.path, errno);
  if (::fchmod(file.get(), permissions(entry)) != 0) return sys_error("chmod", place.path, errno);
  archive_entry_xattr_reset(entry);
  const char* given = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  while (archive_entry_xattr_next(entry, &given, &value, &size) == ARCHIVE_OK) {
    const std::string name = given ? given : "";
    // Overlayfs reads its own ones from a lower layer, and a capability is a power.
    const bool plain = name.starts_with("user.") && !name.starts_with("user.overlay.");
    if (plain && ::fsetxattr(file.get(), name.c_str(), value, size, 0) == 0) continue;
    if (name == "security.capability") note(left_out_.with_capabilities, left_out_.capabilities_count, place.path);
    if (left_out_.attributes.size() < kMostAttributes || left_out_.attributes.contains(name))
      ++left_out_.attributes[name];
    else
      ++left_out_.attributes["others"];
  }
  return {};
}

// A device would be of this host, and /dev is the delegate's. What lies below the entry is hidden all the same.
Result<void> TreeWriter::leave_out(const Place& place) {
  TRY_VOID(clear(place, false));
  note(left_out_.special, left_out_.special_count, place.path);
  return {};
}

Result<void> TreeWriter::whiteout(const std::vector<std::string>& parts) {
  const std::string name = parts.back();
  const bool hides_one = name.starts_with(kWhiteout) && !name.starts_with(kWhiteoutMeta);
  if (name != kOpaque && !hides_one) return {};  // of another kind of layers, no content
  const Place place = TRY(find_place(parts, Parents::looked_for));
  if (!place.parent) return {};
  if (name == kOpaque) return hide_inside(place.parent);
  const std::string hidden = name.substr(kWhiteout.size());
  if (hidden.empty() || hidden == "." || hidden == "..") return refuse(place.path, "hides nothing that has a name");
  return hide(place.parent, hidden);
}

// What the layers below have under this name; what this layer has put there stays, wherever in the archive it was.
Result<void> TreeWriter::hide(const Fd& parent, const std::string& name) {
  const auto facts = TRY(look_at(parent, name));
  if (!facts) return {};
  const bool own = own_.contains({TRY(sys::fstat(parent, name)).st_ino, name});
  if (!S_ISDIR(facts->st_mode)) return own ? Result<void>() : remove(parent, name);
  TRY_VOID(hide_inside(TRY(sys::open_directory(parent.get(), name))));
  if (own) return {};
  const auto removed = sys::unlinkat(parent.get(), name, AT_REMOVEDIR);
  if (!removed && removed.error().error_number != ENOTEMPTY && removed.error().error_number != EEXIST) return removed;
  return {};
}

// Once for each directory: nothing of the layers below comes into it again, and to list it for every marker is quadratic.
Result<void> TreeWriter::hide_inside(const Fd& directory) {
  if (!hidden_inside_.insert(TRY(sys::fstat(directory, "a directory of the layers below")).st_ino).second) return {};
  for (const auto& name : TRY(sys::list_directory(directory.get(), "."))) TRY_VOID(hide(directory, name));
  return {};
}

Result<void> TreeWriter::remove(const Fd& parent, const std::string& name) {
  const auto facts = TRY(look_at(parent, name));
  if (!facts) return {};
  own_.erase({TRY(sys::fstat(parent, name)).st_ino, name});
  if (!S_ISDIR(facts->st_mode)) return sys::unlinkat(parent.get(), name, 0);
  const Fd directory = TRY(sys::open_directory(parent.get(), name));
  for (const auto& inner : TRY(sys::list_directory(directory.get(), "."))) TRY_VOID(remove(directory, inner));
  return sys::unlinkat(parent.get(), name, AT_REMOVEDIR);
}

Result<void> TreeWriter::set_directory_times() {
  for (const auto& [path, time] : directory_times_) {
    const auto opened = open_directory(path);
    if (!opened) continue;  // a later entry took its place
    const std::array<timespec, 2> times{time, time};
    if (::futimens(opened->get(), times.data()) != 0) return sys_error("utimens", path, errno);
  }
  return {};
}

}  // namespace benchsand
