#include "shim/container_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "oci/sha256.h"
#include "oci/units.h"

namespace benchsand {

namespace {

constexpr const char* kStaging = ".benchsand-output-";
constexpr std::size_t kNotices = 20;
constexpr mode_t kPermissions = 0777;  // no set-user-ID, set-group-ID or sticky bit passes in either direction

std::string kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "file";
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "symbolic link";
    case S_IFIFO:
      return "FIFO";
    case S_IFSOCK:
      return "socket";
    default:
      return "device";
  }
}

std::pair<std::string, std::string> first_name(const std::string& path) {
  const auto slash = path.find('/');
  return slash == std::string::npos ? std::pair(path, std::string())
                                    : std::pair(path.substr(0, slash), path.substr(slash + 1));
}

}  // namespace

// Copies a directory of the engine's into the tmpfs. Nothing is followed and no other mount entered.
class Seeder {
 public:
  Seeder(ContainerOutput& of, const Policy& policy)
      : of_(of),
        policy_(policy),
        owner_(policy.host_ids ? policy.host_ids->candidate : policy.uid),
        group_(policy.host_ids ? policy.host_ids->candidate : policy.gid) {}

  Result<void> directory(const Fd& from, const Fd& into, const std::string& prefix, std::uint64_t depth) {
    for (const auto& name : TRY(sys::list_directory(from.get(), "."))) {
      if (depth == 1 && name.starts_with(kStaging)) continue;  // of a run that was killed
      TRY_VOID(entry(from, into, name, prefix + name, depth));
    }
    return {};
  }

  // ENOSPC is the tmpfs's: nothing is written anywhere else.
  Result<void> finished(Result<void> done) const {
    if (done || done.error().error_number != ENOSPC) return done;
    return usage("output: " + of_.name_ + " holds more than the disk limit (" +
                 format_quantity(policy_.limits.disk_bytes, Unit::bytes) + ", " + std::to_string(policy_.limits.files) +
                 " files); mount it read-only, or ask for more disk");
  }

 private:
  Result<void> entry(const Fd& from, const Fd& into, const std::string& name, const std::string& path,
                     std::uint64_t depth) {
    const auto facts = sys::fstatat(from.get(), name, AT_SYMLINK_NOFOLLOW);
    if (!facts && facts.error().error_number == ENOENT) return {};  // gone meanwhile
    if (!facts) return std::unexpected(facts.error());
    if (S_ISLNK(facts->st_mode)) return link(from, into, name);
    if (S_ISREG(facts->st_mode)) return file(from, into, name, path);
    if (!S_ISDIR(facts->st_mode)) return left_out(path, "it is a " + kind_of(facts->st_mode));
    if (depth >= policy_.collect.depth) return left_out(path, "it lies too deep");
    return subdirectory(from, into, name, path, depth);
  }

  Result<void> subdirectory(const Fd& from, const Fd& into, const std::string& name, const std::string& path,
                            std::uint64_t depth) {
    const auto inside = sys::openat2_beneath(from.get(), name, O_RDONLY | O_DIRECTORY);
    if (!inside && inside.error().error_number == EXDEV) return left_out(path, "another file system is mounted there");
    if (!inside) return std::unexpected(inside.error());
    TRY_VOID(sys::mkdirat(into.get(), name, 0700));
    const Fd made = TRY(sys::open_directory(into.get(), name));
    TRY_VOID(directory(*inside, made, path + "/", depth + 1));
    return hand_over(made, path, TRY(sys::fstat(*inside, path)));
  }

  Result<void> file(const Fd& from, const Fd& into, const std::string& name, const std::string& path) {
    const auto source = sys::openat2_beneath(from.get(), name, O_RDONLY | O_NONBLOCK);
    if (!source && source.error().error_number == EXDEV) return left_out(path, "another file system is mounted there");
    if (!source) return std::unexpected(source.error());
    const auto facts = TRY(sys::fstat(*source, path));
    if (!S_ISREG(facts.st_mode)) return left_out(path, "it is a " + kind_of(facts.st_mode));
    const Fd copy = TRY(sys::openat(into.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    const std::string sha256 = TRY(copied(*source, copy, path));
    of_.seeded_[path] = {sha256, facts.st_mode & kPermissions};
    return hand_over(copy, path, facts);
  }

  Result<std::string> copied(const Fd& source, const Fd& copy, const std::string& path) const {
    Sha256 digest;
    std::array<char, 65536> buffer;
    for (;;) {
      const ssize_t n = ::read(source.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return sys_error("read", of_.name_ + "/" + path, errno);
      if (n == 0) return digest.hex();
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
      digest.update(bytes);
      TRY_VOID(sys::write_all(copy, bytes, path));
    }
  }

  Result<void> link(const Fd& from, const Fd& into, const std::string& name) {
    const std::string target = TRY(sys::readlinkat(from.get(), name));
    if (::symlinkat(target.c_str(), into.get(), name.c_str()) != 0) return sys_error("symlink", name, errno);
    if (::fchownat(into.get(), name.c_str(), owner_, group_, AT_SYMLINK_NOFOLLOW) != 0)
      return sys_error("chown", name, errno);
    return {};
  }

  Result<void> hand_over(const Fd& copy, const std::string& path, const struct stat& facts) const {
    const timespec times[] = {facts.st_mtim, facts.st_mtim};
    if (::fchown(copy.get(), owner_, group_) != 0) return sys_error("chown", path, errno);
    if (::fchmod(copy.get(), facts.st_mode & kPermissions) != 0) return sys_error("chmod", path, errno);
    if (::futimens(copy.get(), times) != 0) return sys_error("futimens", path, errno);
    return {};
  }

  Result<void> left_out(const std::string& path, const std::string& why) {
    if (of_.notices_.size() < kNotices)
      of_.notices_.push_back("output: " + of_.name_ + "/" + path + " was left out: " + why);
    else if (of_.notices_.size() == kNotices)
      of_.notices_.push_back("output: more was left out of " + of_.name_);
    return {};
  }

  ContainerOutput& of_;
  const Policy& policy_;
  uid_t owner_;
  gid_t group_;
};

namespace {

// Moves whole files of the staging directory to their places below `root`, one rename each.
class Returner {
 public:
  Returner(const Fd& root, const Fd& staging, struct stat owner) : root_(root), staging_(staging), owner_(owner) {}

  // Why it cannot stand there; "": it does. Only what the candidate chose is such a reason, all else is an error.
  Result<std::string> move(const CollectedFile& file) const {
    const Fd source = TRY(sys::openat2_beneath(staging_.get(), file.path, O_RDONLY | O_NOFOLLOW));
    if (::fchown(source.get(), owner_.st_uid, owner_.st_gid) != 0) return sys_error("chown", file.path, errno);
    if (::fchmod(source.get(), file.mode & kPermissions) != 0) return sys_error("chmod", file.path, errno);
    const Fd here = TRY(sys::open_directory(root_.get(), "."));
    return into(here, file.path, file.path);
  }

 private:
  Result<std::string> into(const Fd& directory, const std::string& rest, const std::string& path) const {
    const auto [name, below] = first_name(rest);
    const auto facts = sys::fstatat(directory.get(), name, AT_SYMLINK_NOFOLLOW);
    if (!facts && facts.error().error_number != ENOENT) return std::unexpected(facts.error());
    if (!below.empty()) {
      if (facts && !S_ISDIR(facts->st_mode)) return "a " + kind_of(facts->st_mode) + " is in its way";
      if (!facts) TRY_VOID(make_directory(directory, name));
      const auto next = sys::openat2_beneath(directory.get(), name, O_RDONLY | O_DIRECTORY);
      if (!next && next.error().error_number == EXDEV) return std::string("another file system is in its way");
      if (!next) return std::unexpected(next.error());
      return into(*next, below, path);
    }
    if (facts && !S_ISREG(facts->st_mode)) return "a " + kind_of(facts->st_mode) + " is in its place";
    // A rename follows nothing: whatever came there meanwhile, it is the name in this directory that changes.
    if (::renameat(staging_.get(), path.c_str(), directory.get(), name.c_str()) == 0) return std::string();
    if (errno == EBUSY || errno == EISDIR) return std::string("something else is in its place");
    return sys_error("rename to", path, errno);
  }

  Result<void> make_directory(const Fd& directory, const std::string& name) const {
    TRY_VOID(sys::mkdirat(directory.get(), name, 0700));
    const Fd made = TRY(sys::openat2_beneath(directory.get(), name, O_RDONLY | O_DIRECTORY));
    if (::fchown(made.get(), owner_.st_uid, owner_.st_gid) != 0) return sys_error("chown", name, errno);
    if (::fchmod(made.get(), 0755) != 0) return sys_error("chmod", name, errno);
    return {};
  }

  const Fd& root_;
  const Fd& staging_;
  struct stat owner_;
};

}  // namespace

Result<ContainerOutput> ContainerOutput::of_user(const std::string& directory) {
  auto opened = sys::openat(sys::kHere, directory, O_RDONLY | O_DIRECTORY);
  if (!opened) return usage("output: use " + directory + ": " + opened.error().message);
  return ContainerOutput(std::move(*opened), directory);
}

Result<ContainerOutput> ContainerOutput::in_layer(const Fd& rootfs, const std::string& path) {
  Fd directory = TRY(sys::open_directory(rootfs.get(), "."));
  for (std::string rest = path; !rest.empty();) {
    const auto [name, below] = first_name(rest);
    rest = below;
    if (name.empty()) continue;
    const auto made = sys::mkdirat(directory.get(), name, 0755);
    if (!made && made.error().error_number != EEXIST) return std::unexpected(made.error());
    auto next = sys::openat2_beneath(directory.get(), name, O_RDONLY | O_DIRECTORY);
    if (!next)
      return fault("output: use " + path + " of the container: " + next.error().message +
                   "; it must be a directory of the image, and no symbolic link");
    directory = std::move(*next);
  }
  return ContainerOutput(std::move(directory), path);
}

Result<void> ContainerOutput::seed(const OutputFs& output, const Policy& policy) {
  Seeder seeder(*this, policy);
  const Fd into = TRY(sys::open_directory(output.mount().get(), "."));
  return seeder.finished(seeder.directory(directory_, into, "", 1));
}

// All is copied beside its place before anything is replaced, so that a full disk is found while everything is as it was.
Result<Collected> ContainerOutput::write_back(const OutputFs& output, const CollectCaps& caps) const {
  const std::string staging = kStaging + TRY(sys::random_hex(8));
  auto written = write_back_by(output, caps, staging);
  const auto removed = sys::remove_tree(directory_.get(), staging);
  const auto failed = [&](const Error& why) { return fault("output: write it back to " + name_ + ": " + why.message); };
  if (!written) return failed(written.error());
  if (!removed) return failed(removed.error());
  return written;
}

Result<Collected> ContainerOutput::write_back_by(const OutputFs& output, const CollectCaps& caps,
                                                 const std::string& staging) const {
  TRY_VOID(sys::mkdirat(directory_.get(), staging, 0700));
  const Fd into = TRY(sys::openat2_beneath(directory_.get(), staging, O_RDONLY | O_DIRECTORY));
  auto collected = TRY(collect_outputs(output.mount(), caps, into));
  const Returner returner(directory_, into, TRY(sys::fstat(directory_, name_)));
  std::vector<CollectedFile> kept;
  for (auto& file : collected.files) {
    const auto before = seeded_.find(file.path);
    const bool same =
        before != seeded_.end() && before->second.sha256 == file.sha256 && before->second.mode == file.mode;
    // A later run would not be given it: such names are what a killed monitor leaves.
    const bool ours = file.path.starts_with(kStaging);
    const std::string why = same ? "" : ours ? "the name is benchsand's own" : TRY(returner.move(file));
    if (why.empty())
      kept.push_back(std::move(file));
    else
      collected.refused.push_back({file.path, "not written back: " + why});
  }
  collected.files = std::move(kept);
  return collected;
}

}  // namespace benchsand
