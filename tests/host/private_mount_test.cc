// What a run sees of the host's files: the same bytes, and nothing else of them.
#include "shim/private_mount.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

std::string error_of(const auto& result) {
  return result ? "no error" : result.error().message;
}

PrivateMount mounted(const TempFolder& folder, const std::string& name, RootfsMount kind) {
  std::filesystem::create_directories(folder.path("empty"));
  const Fd empty = *sys::open_directory(sys::kHere, folder.path("empty"));
  auto made = private_mount(*sys::openat(sys::kHere, folder.path(name), O_PATH), "it", kind, empty);
  if (!made) FAIL(made.error().message);
  return std::move(*made);
}

bool can_lock(const Fd& file) {
  return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

TEST_CASE("two mounts over one directory share no lock, two binds do") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("in"));
  folder.write("in/file", "x");
  for (const auto kind : {RootfsMount::overlay, RootfsMount::bind}) {
    const auto one = mounted(folder, "in", kind), other = mounted(folder, "in", kind);
    const Fd first = *sys::openat(one.mount.get(), "file", O_RDONLY);
    const Fd second = *sys::openat(other.mount.get(), "file", O_RDONLY);
    CHECK(can_lock(first));
    CHECK(can_lock(second) == (kind == RootfsMount::overlay));
  }
}

TEST_CASE("a file alone is a copy with its bytes, mode and time, and read-only") {
  const TempFolder folder;
  const std::string path = folder.write("file", "the bytes");
  REQUIRE(::chmod(path.c_str(), 0750) == 0);
  const timespec times[] = {{1000, 0}, {2000, 5}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  const auto made = mounted(folder, "file", RootfsMount::overlay);
  CHECK(made.directory);
  CHECK(made.inside == "/file");
  CHECK(*sys::read_file(made.mount.get(), "file") == "the bytes");
  const auto facts = *sys::fstatat(made.mount.get(), "file", 0);
  CHECK((facts.st_mode & 07777) == 0750);
  CHECK(facts.st_mtim.tv_sec == 2000);
  CHECK(facts.st_mtim.tv_nsec == 5);
  CHECK(error_of(sys::openat(made.mount.get(), "file", O_WRONLY)) == "open file: Read-only file system");
  folder.write("file", "other bytes");
  CHECK(*sys::read_file(made.mount.get(), "file") == "the bytes");
  folder.write("nothing", "");
  CHECK(*sys::read_file(mounted(folder, "nothing", RootfsMount::overlay).mount.get(), "file") == "");
}

TEST_CASE("a file that holds more than its size says is not copied as if that were all") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("empty"));
  const Fd opened = *sys::openat(sys::kHere, "/proc/self/environ", O_PATH);
  const auto made =
      private_mount(opened, "it", RootfsMount::overlay, *sys::open_directory(sys::kHere, folder.path("empty")));
  CHECK(error_of(made) == "copy it: there is more in the file than its size says");
}

TEST_CASE("an overlay over two overlays is refused with what to do") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("in"));
  std::filesystem::create_directories(folder.path("empty"));
  // In a mount namespace of its own, for a lower layer must be mounted somewhere.
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0) ::_exit(10);
    const std::string here = folder.path("in"), lower = folder.path("empty");
    const std::string stack = "mount --make-rprivate / && for i in 1 2; do mount -t overlay none -o lowerdir=" + here +
                              ":" + lower + " " + here + " || exit 1; done";
    if (std::system(stack.c_str()) != 0) ::_exit(11);
    const auto made = private_mount(*sys::openat(sys::kHere, here, O_PATH), "it", RootfsMount::overlay,
                                    *sys::open_directory(sys::kHere, lower));
    ::_exit(
        error_of(made).find("keep it on a file system of the host, or use a profile that says rootfs_mount: bind") !=
                std::string::npos
            ? 0
            : 12);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("the devices are the harmless six, and nobody can add one") {
  const auto mount = device_mount();
  REQUIRE(mount);
  const std::pair<const char*, dev_t> nodes[] = {{"null", makedev(1, 3)},    {"zero", makedev(1, 5)},
                                                 {"full", makedev(1, 7)},    {"random", makedev(1, 8)},
                                                 {"urandom", makedev(1, 9)}, {"tty", makedev(5, 0)}};
  for (const auto& [name, number] : nodes) {
    const auto facts = *sys::fstatat(mount->get(), name, 0);
    CHECK(facts.st_rdev == number);
    CHECK(facts.st_mode == (S_IFCHR | 0666));
  }
  CHECK(sys::list_directory(mount->get(), ".")->size() == 10);
  CHECK(::mknodat(mount->get(), "mem", S_IFCHR | 0600, makedev(1, 1)) != 0);
  CHECK(errno == EROFS);
  CHECK(error_of(sys::write_file(mount->get(), "null", "gone")) == "no error");
}

TEST_CASE("a run's own /dev has places for a terminal when it has one") {
  const auto mount = device_mount(true);
  REQUIRE(mount);
  CHECK(sys::list_directory(mount->get(), ".")->size() == 13);
  CHECK(S_ISDIR(sys::fstatat(mount->get(), "pts", 0)->st_mode));
  CHECK(*sys::readlinkat(mount->get(), "ptmx") == "pts/ptmx");
  const auto console = *sys::fstatat(mount->get(), "console", AT_SYMLINK_NOFOLLOW);
  CHECK(console.st_mode == (S_IFCHR | 0666));
  CHECK(console.st_rdev == makedev(1, 3));
  CHECK(sys::openat(mount->get(), "console", O_RDWR | O_CREAT | O_TRUNC, 0666));  // as runc opens it
  CHECK_FALSE(sys::create_file(mount->get(), "more", "x", 0600));
}
