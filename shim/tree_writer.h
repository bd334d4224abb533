// Puts the entries of tar archives into a directory. Whatever an archive says, nothing outside the directory is read, written or
// linked to: names are resolved by the kernel with the directory as the root, and what stands in the place of an entry is removed,
// never written through.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shim/tar_reader.h"

namespace benchsand {

struct TreeBounds {
  std::uint64_t bytes = std::uint64_t{64} << 30;  // of all files, as their sizes say, and of one layer as plain tar
  std::uint64_t entries = 4'000'000;
};
inline constexpr std::size_t kDeepestEntry = 256, kLongestEntry = 4095, kLongestName = 255;

// What an archive held and the directory does not. Names are cut off after some.
struct LeftOut {
  std::map<std::string, std::uint64_t> attributes;  // extended ones, by name
  std::vector<std::string> with_capabilities;       // files
  std::vector<std::string> special;                 // devices, sockets and FIFOs
  std::uint64_t special_count = 0, capabilities_count = 0;
};

enum class Layering { none, whiteouts };

class TreeWriter {
 public:
  // `top` must stay open. Set-user-ID bits are kept: only root comes to where trees are, and they are mounted nosuid.
  explicit TreeWriter(const Fd& top, TreeBounds bounds = {}) : top_(top), bounds_(bounds) {}

  // One archive over what is there. With whiteouts it is a layer of an image: ".wh.NAME" hides NAME of the layers below, and
  // ".wh..wh..opq" all that they have in its directory. What the layer itself has there stays.
  Result<void> apply(TarReader& tar, Layering layering);

  const LeftOut& left_out() const { return left_out_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t entries() const { return entries_; }

 private:
  struct Place {
    Fd parent;
    ino_t parent_inode = 0;
    std::string name;
    std::string path;  // inside, without a slash before it
  };
  enum class Parents { made, looked_for };

  Result<void> apply_entry(TarReader& tar, archive_entry* entry, Layering layering);
  Result<std::vector<std::string>> components(const std::string& given) const;
  Result<Fd> open_directory(const std::string& path) const;
  Result<Fd> open_through_links(const std::string& path) const;
  Result<void> make_directories(const std::string& path);
  Result<Place> find_place(std::vector<std::string> parts, Parents parents);
  Result<void> clear(const Place& place, bool for_directory);
  Result<void> put(TarReader& tar, archive_entry* entry, const Place& place);
  Result<void> put_file(TarReader& tar, archive_entry* entry, const Place& place);
  Result<void> put_directory(archive_entry* entry, const Place& place);
  Result<void> put_symlink(archive_entry* entry, const Place& place);
  Result<void> put_link(const std::string& target, const Place& place);
  Result<void> put_attributes(const Fd& file, archive_entry* entry, const Place& place);
  Result<void> leave_out(const Place& place);
  Result<void> whiteout(const std::vector<std::string>& parts);
  Result<void> hide(const Fd& parent, const std::string& name);
  Result<void> hide_inside(const Fd& directory);
  Result<void> remove(const Fd& parent, const std::string& name);
  Result<void> set_directory_times();
  std::unexpected<Error> refuse(const std::string& name, const std::string& why) const;

  const Fd& top_;
  TreeBounds bounds_;
  LeftOut left_out_;
  std::uint64_t bytes_ = 0, entries_ = 0;
  // Of the archive that is being applied.
  std::string what_;
  std::set<std::pair<ino_t, std::string>> own_;  // what it has put where, by directory and name
  std::set<ino_t> hidden_inside_;                // directories of which the layers below have nothing any more
  std::map<std::string, timespec> directory_times_;
};

}  // namespace benchsand
