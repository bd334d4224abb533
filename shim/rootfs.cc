#include "shim/rootfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>

#include "oci/image_notices.h"
#include "shim/image_cache.h"
#include "shim/kernel_fs.h"
#include "shim/rootfs_cache.h"

namespace benchsand {

namespace {

// nullopt: nothing there. No symbolic link is followed: where it leads inside is not where the mount would appear.
Result<std::optional<mode_t>> kind_at(const Rootfs& rootfs, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const Fd found(static_cast<int>(::syscall(SYS_openat2, rootfs.dir.get(), path.c_str(), &how, sizeof how)));
  if (found) return TRY(sys::fstat(found, path)).st_mode & S_IFMT;
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  if (errno == ELOOP) return usage("use the rootfs " + rootfs.path + ": " + path + " leads through a symbolic link");
  return sys_error("look for " + path + " in", rootfs.path, errno);
}

// In what an engine made for one container, where no symbolic link stands in the way (kind_at has looked).
Result<void> make_place(const Rootfs& rootfs, const MountPlace& place) {
  for (std::size_t slash = place.path.find('/', 1);; slash = place.path.find('/', slash + 1)) {
    const bool last = slash == std::string::npos;
    const std::string part = place.path.substr(1, last ? std::string::npos : slash - 1);
    const auto made = last && !place.directory ? sys::create_file(rootfs.dir.get(), part, "", 0644)
                                               : sys::mkdirat(rootfs.dir.get(), part, 0755);
    if (!made && made.error().error_number != EEXIST) return made;
    if (last) return {};
  }
}

bool is_below(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

Result<std::vector<MountPlace>> places_of(Policy& policy) {
  std::vector<MountPlace> places = {{"/proc"}, {"/dev"}, {policy.output}};
  bool workdir_is_mounted = policy.workdir == policy.output || policy.workdir == "/";
  for (auto& input : policy.inputs) {
    std::error_code failed;
    const std::string found = std::filesystem::canonical(input.source, failed).string();
    if (failed) return usage("find the input " + input.source + ": " + failed.message());
    input.source = found;
    places.push_back({input.target, std::filesystem::is_directory(input.source)});
    if (is_below(policy.workdir, input.target)) {
      workdir_is_mounted = std::filesystem::is_directory(input.source + policy.workdir.substr(input.target.size()));
      if (!workdir_is_mounted)
        return usage("use the workdir " + policy.workdir + ": no such directory in the input " + input.source);
    }
  }
  if (!workdir_is_mounted && is_below(policy.workdir, policy.output))
    return usage("use the workdir " + policy.workdir + ": the output is empty when the run starts");
  if (!workdir_is_mounted) places.push_back({policy.workdir});
  return places;
}

}  // namespace

Result<std::string> real_target(const Rootfs& rootfs, const std::string& target, const std::vector<std::string>& kept) {
  const std::size_t slash = target.rfind('/');
  if (slash == 0 || slash == std::string::npos) return target;
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const std::string above = target.substr(0, slash);
  const Fd found(static_cast<int>(::syscall(SYS_openat2, rootfs.dir.get(), above.c_str(), &how, sizeof how)));
  if (!found) return target;  // whatever is wrong is said when a place is made for it
  const std::string real = TRY(sys::readlinkat(sys::kHere, "/proc/self/fd/" + std::to_string(found.get())));
  if (!is_below(real, rootfs.path)) return target;
  const std::string inside = real.substr(rootfs.path.size()) + target.substr(slash);
  const bool is_kept =
      std::any_of(kept.begin(), kept.end(), [&](const auto& place) { return is_below(inside, place); });
  return is_kept ? target : inside;
}

namespace {

std::unexpected<Error> missing_places(const Rootfs& rootfs, const std::vector<MountPlace>& missing) {
  std::string names, directories, files;
  for (const auto& place : missing) {
    names += (names.empty() ? "" : ", ") + place.path;
    (place.directory ? directories : files) += " " + rootfs.path + place.path;
  }
  return usage("use the rootfs " + rootfs.path + ": it has no " + names +
               "; benchsand changes nothing in it, so make " + (missing.size() == 1 ? "it" : "them") + ":" +
               (directories.empty() ? "" : " mkdir -p" + directories) +
               (directories.empty() || files.empty() ? "" : " &&") + (files.empty() ? "" : " touch" + files));
}

// An operator's path that is wrong is a usage error, whatever the system call said. Empty: it is as it should be.
std::string not_of_kind(const std::string& path, bool directory, bool file) {
  const auto facts = sys::fstatat(sys::kHere, path, 0);
  if (!facts && facts.error().error_number == ENOENT)
    return path + " is not there; make it, or correct the path (a relative one begins at the task's folder)";
  if (!facts) return facts.error().message;
  if ((directory && S_ISDIR(facts->st_mode)) || (file && S_ISREG(facts->st_mode))) return "";
  return path + " is not a " + (directory && file ? "directory or regular file" : "regular file");
}

}  // namespace

Result<void> check_task_files(const Policy& policy) {
  std::string problems;
  const auto require = [&](const std::string& what, const std::string& path, bool directory) {
    const std::string problem = not_of_kind(path, directory, true);
    const auto place = policy.places.find(what);
    if (!problem.empty())
      problems +=
          (problems.empty() ? "" : "\n") + (place == policy.places.end() ? "" : place->second) + what + ": " + problem;
  };
  if (!policy.image)
    require("rootfs", policy.rootfs, true);
  else if (policy.image->form != ImageForm::stored)
    require("image", policy.image->path, policy.image->form == ImageForm::oci);
  if (!policy.stdin_file.empty()) require("stdin", policy.stdin_file, false);
  for (const auto& input : policy.inputs) require("input for " + input.target, input.source, true);
  if (!problems.empty()) return usage(problems);
  return {};
}

Result<Rootfs> open_rootfs(const std::string& path) {
  const auto facts = TRY(sys::fstatat(sys::kHere, path, 0));
  Rootfs rootfs;
  rootfs.path = path;
  if (!S_ISDIR(facts.st_mode)) {
    rootfs.lacking = Lacking::laid_over;
    auto cached = TRY(cached_rootfs(TRY(sys::openat(sys::kHere, path, O_RDONLY | O_NONBLOCK)), path));
    rootfs.path = std::move(cached.path);
    rootfs.dir = std::move(cached.dir);
  } else {
    std::error_code failed;
    rootfs.path = std::filesystem::canonical(path, failed).string();
    if (failed) return fault("find the rootfs " + path + ": " + failed.message());
    if (rootfs.path == "/") return usage("use / as rootfs: it is this host; give a directory made for the sandbox");
    rootfs.dir = TRY(sys::open_directory(sys::kHere, rootfs.path));
  }
  TRY_VOID(require_stored_files(rootfs.dir, "use the rootfs " + rootfs.path));
  const auto top = TRY(sys::fstat(rootfs.dir, rootfs.path));
  // Whoever can write there while the delegate works can lead it elsewhere.
  if (top.st_uid != 0 || (top.st_mode & 022) != 0)
    return usage("use the rootfs " + rootfs.path +
                 ": it must belong to root and be writable by nobody else: chown root " + rootfs.path +
                 " && chmod go-w " + rootfs.path);
  return rootfs;
}

namespace {

// What an engine exports has no manifest of the registry, so nothing here can be hashed to the digest of one.
void note_pin(Policy& policy, const ImageEntry& image) {
  const std::string& pin = policy.image->digest;
  if (policy.image->form != ImageForm::stored || pin.empty() || pin == image.digest ||
      std::find(image.ids.begin(), image.ids.end(), pin) != image.ids.end())
    return;
  policy.notices.push_back("image: that it was pulled by the digest " + pin + " is the engine's word; " + image.digest +
                           " is what was verified, and a task can name that");
}

void note_image(Policy& policy, const UsedImage& image) {
  policy.image_digest = image.entry.digest;
  note_pin(policy, image.entry);
  for (auto& notice : image_notices(image.entry.config, policy)) policy.notices.push_back(std::move(notice));
  policy.notices.insert(policy.notices.end(), image.entry.notices.begin(), image.entry.notices.end());
}

Result<UsedImage> use_image(const Policy& policy) {
  const std::string name = to_text(*policy.image);
  if (policy.image->form != ImageForm::stored) {
    const auto source = TRY(ImageSource::open(*policy.image));
    if (!policy.image_digest.empty() && policy.image_digest != source.digest())
      return usage("use " + source.where() + ": it was " + policy.image_digest + " when the run was ordered, and is " +
                   source.digest() + " now");
    return TRY(ImageCache::make()).take(source, name);
  }
  const auto cache = TRY(ImageCache::find());
  const std::string& digest = policy.image_digest.empty() ? policy.image->digest : policy.image_digest;
  if (cache && !digest.empty())
    if (auto ready = TRY(cache->use(digest, name))) return std::move(*ready);
  return fault("use the image " + name + ": it is not unpacked any more; run the task again");
}

}  // namespace

Result<Rootfs> open_task_rootfs(Policy& policy) {
  if (!policy.image) return open_rootfs(policy.rootfs);
  auto image = TRY(use_image(policy));
  note_image(policy, image);
  return Rootfs{std::move(image.path), std::move(image.rootfs), Lacking::laid_over, std::move(image.in_use)};
}

Result<void> look_at_image(Policy& policy) {
  if (!policy.image || policy.image->form == ImageForm::stored) return {};
  const auto source = TRY(ImageSource::open(*policy.image));
  policy.image_digest = source.digest();
  for (auto& notice : image_notices(source.config(), policy)) policy.notices.push_back(std::move(notice));
  return {};
}

Result<Rootfs> open_container_rootfs(const std::string& path) {
  std::error_code failed;
  Rootfs rootfs;
  rootfs.path = std::filesystem::canonical(path, failed).string();
  if (failed) return fault("find the rootfs " + path + ": " + failed.message());
  if (rootfs.path == "/") return usage("use / as rootfs: it is this host");
  rootfs.dir = TRY(sys::open_directory(sys::kHere, rootfs.path));
  TRY_VOID(require_stored_files(rootfs.dir, "use the rootfs " + rootfs.path));
  rootfs.lacking = Lacking::made;
  return rootfs;
}

namespace {

// The first entry that is neither file, directory nor symbolic link; empty when there is none. By the type in the directory
// itself, so that a large input costs a listing and no stat.
Result<std::string> special_file_in(const Fd& dir, const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(::fcntl(dir.get(), F_DUPFD_CLOEXEC, 0)), ::closedir);
  if (!stream) return sys_error("list", path, errno);
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    mode_t mode = DTTOIF(entry->d_type);
    if (entry->d_type == DT_UNKNOWN) mode = TRY(sys::fstatat(dir.get(), name, AT_SYMLINK_NOFOLLOW)).st_mode & S_IFMT;
    if (mode == S_IFDIR) {
      const std::string found = TRY(special_file_in(TRY(sys::open_directory(dir.get(), name)), path + "/" + name));
      if (!found.empty()) return found;
    } else if (mode != S_IFREG && mode != S_IFLNK) {
      return path + "/" + name;
    }
    errno = 0;
  }
  if (errno != 0) return sys_error("list", path, errno);
  return std::string();
}

Result<Input> open_input(const InputMount& asked) {
  Input input{asked.source, asked.target, TRY(sys::openat(sys::kHere, asked.source, O_PATH | O_NOFOLLOW))};
  const auto facts = TRY(sys::fstat(input.opened, asked.source));
  if (!S_ISDIR(facts.st_mode) && !S_ISREG(facts.st_mode))
    return usage("mount the input " + asked.source + ": neither a directory nor a regular file");
  TRY_VOID(require_stored_files(input.opened, "mount the input " + asked.source));
  if (S_ISREG(facts.st_mode)) input.file_size = static_cast<std::uint64_t>(facts.st_size);
  if (S_ISDIR(facts.st_mode)) {
    const std::string special = TRY(special_file_in(TRY(sys::open_directory(input.opened.get(), ".")), asked.source));
    if (!special.empty())
      return usage("mount the input " + asked.source + ": " + special +
                   " is a socket, FIFO or device, through which a candidate could talk to this host; take it out");
  }
  return input;
}

// The copies are memory that no cgroup of the run is charged for. Apparent sizes: a hole is copied as zeros.
Result<void> bound_copies(const std::vector<Input>& inputs) {
  const Input* largest = nullptr;
  for (std::uint64_t left = kLargestCopies; const auto& input : inputs) {
    if (!input.file_size) continue;
    if (!largest || *input.file_size > *largest->file_size) largest = &input;
    if (*input.file_size > left)
      return usage("mount the input " + largest->source + " (" + std::to_string(*largest->file_size) +
                   " bytes): inputs that are files alone are copied into memory for the run, and they may have " +
                   std::to_string(kLargestCopies >> 20) +
                   " MiB in all; give its directory as the input, which copies nothing");
    left -= *input.file_size;
  }
  return {};
}

}  // namespace

Result<std::vector<Input>> open_inputs(const Policy& policy) {
  std::vector<Input> inputs;
  for (const auto& asked : policy.inputs) inputs.push_back(TRY(open_input(asked)));
  if (policy.rootfs_mount == RootfsMount::overlay) TRY_VOID(bound_copies(inputs));
  return inputs;
}

Result<void> require_nothing_to_lay_over(const Rootfs& rootfs, const std::string& cure) {
  if (rootfs.to_lay_over.empty()) return {};
  std::string names;
  for (const auto& place : rootfs.to_lay_over) names += (names.empty() ? "" : ", ") + place.path;
  return usage("use the rootfs " + rootfs.path + ": it has no " + names +
               "; it is unpacked for every run of it, so benchsand changes nothing there; add what is missing to the "
               "archive or image, or unpack it into a directory of your own" +
               cure);
}

Result<void> prepare_mount_points(Rootfs& rootfs, Policy& policy) {
  std::vector<MountPlace> missing;
  for (const auto& place : TRY(places_of(policy))) {
    const auto kind = TRY(kind_at(rootfs, place.path));
    if (!kind)
      missing.push_back(place);
    else if (S_ISDIR(*kind) != place.directory)
      return usage("use the rootfs " + rootfs.path + ": " + place.path + " is " +
                   (place.directory ? "no directory there" : "a directory there, and the input is a file"));
  }
  if (missing.empty()) return {};
  switch (rootfs.lacking) {
    case Lacking::refused:
      return missing_places(rootfs, missing);
    case Lacking::laid_over:
      rootfs.to_lay_over = std::move(missing);
      if (policy.rootfs_mount == RootfsMount::overlay || is_down(policy, Relaxation::rootfs)) return {};
      return require_nothing_to_lay_over(rootfs, ", or use a profile that says rootfs_mount: overlay");
    case Lacking::made:
      for (const auto& place : missing) TRY_VOID(make_place(rootfs, place));
  }
  return {};
}

}  // namespace benchsand
