#include "shim/place_layer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace benchsand {

namespace {

// Of a directory in both: an overlay shows the upper one's. What is only in the layer is as old as what it is in, for a run is to look
// like the next.
Result<void> look_like(const Fd& made, const struct stat& facts, const std::string& name) {
  const std::array<timespec, 2> times{facts.st_mtim, facts.st_mtim};
  if (::fchown(made.get(), facts.st_uid, facts.st_gid) != 0) return sys_error("chown", name, errno);
  if (::fchmod(made.get(), facts.st_mode & 07777) != 0) return sys_error("chmod", name, errno);
  if (::futimens(made.get(), times.data()) != 0) return sys_error("utimens", name, errno);
  return {};
}

class Filler {
 public:
  Filler(const Rootfs& rootfs, const MountPlace& place) : rootfs_(rootfs), place_(place) {}

  // `there`: in the rootfs, if it is. From the `start`th character of the path on.
  Result<void> fill(const Fd& layer, const Fd& there, struct stat facts, std::size_t start) const {
    if (there) facts = TRY(sys::fstat(there, rootfs_.path));
    const std::size_t slash = place_.path.find('/', start);
    const std::string name = place_.path.substr(start, slash == std::string::npos ? slash : slash - start);
    struct stat plain = facts;
    plain.st_uid = plain.st_gid = 0;
    plain.st_mode = slash == std::string::npos && !place_.directory ? 0644 : 0755;
    if (slash == std::string::npos) {
      TRY_VOID(make_last(layer, name, plain));
    } else {
      const Fd below = there ? TRY(directory_there(there, name)) : Fd();
      TRY_VOID(fill(TRY(directory_in(layer, name)), below, plain, slash + 1));
    }
    return look_like(layer, facts, rootfs_.path);
  }

 private:
  Result<void> make_last(const Fd& layer, const std::string& name, const struct stat& plain) const {
    if (place_.directory) return look_like(TRY(directory_in(layer, name)), plain, place_.path);
    TRY_VOID(sys::create_file(layer.get(), name, "", 0644));
    return look_like(TRY(sys::openat(layer.get(), name, O_RDONLY | O_NOFOLLOW)), plain, place_.path);
  }

  static Result<Fd> directory_in(const Fd& layer, const std::string& name) {
    const auto made = sys::mkdirat(layer.get(), name, 0755);
    if (!made && made.error().error_number != EEXIST) return std::unexpected(made.error());
    return sys::open_directory(layer.get(), name);
  }

  // Empty: it is not there.
  Result<Fd> directory_there(const Fd& there, const std::string& name) const {
    auto found = sys::open_directory(there.get(), name);
    if (found) return std::move(*found);
    const int why = found.error().error_number;
    if (why == ENOENT) return Fd();
    if (why != ENOTDIR && why != ELOOP) return std::unexpected(found.error());
    return usage("use the rootfs " + rootfs_.path + ": it cannot have " + place_.path + ", for " + name +
                 " on the way is no directory");
  }

  const Rootfs& rootfs_;
  const MountPlace& place_;
};

}  // namespace

Result<void> fill_place_layer(const Rootfs& rootfs, const Fd& layer) {
  for (const auto& place : rootfs.to_lay_over) TRY_VOID(Filler(rootfs, place).fill(layer, rootfs.dir, {}, 1));
  return {};
}

}  // namespace benchsand
