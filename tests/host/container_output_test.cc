// The output of an engine's container: what goes in, what comes back, and that nothing outside the directory is touched.
#include "shim/container_output.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

constexpr uid_t kCandidate = 2'000'000'001;

std::string error_of(const auto& result) {
  return result ? "no error" : result.error().message;
}

Policy policy_with(std::uint64_t disk, std::uint64_t files) {
  Policy policy;
  policy.limits.disk_bytes = disk;
  policy.limits.files = files;
  policy.collect = {100, 1 << 20, 8};
  policy.host_ids = HostIds{kCandidate - 1, kCandidate};
  return policy;
}

struct Place {
  TempFolder folder;
  std::string directory = folder.path("given");
  Policy policy = policy_with(1 << 20, 64);
  OutputFs output = std::move(*OutputFs::create(policy));
  ContainerOutput of = make();

  ContainerOutput make() {
    REQUIRE(std::filesystem::create_directory(directory));
    REQUIRE(::chown(directory.c_str(), 1234, 1235) == 0);
    return std::move(*ContainerOutput::of_user(directory));
  }
  std::string inside(const std::string& path) { return *sys::read_file(output.mount().get(), path); }
  std::string outside(const std::string& path) { return *sys::read_file(sys::kHere, directory + "/" + path); }
  // As the candidate writes it.
  void write(const std::string& path, const std::string& text, mode_t mode = 0640) {
    static_cast<void>(sys::unlinkat(output.mount().get(), path, 0));
    REQUIRE(error_of(sys::create_file(output.mount().get(), path, text, mode)) == "no error");
    REQUIRE(::fchmodat(output.mount().get(), path.c_str(), mode, 0) == 0);
  }
  void make_inside(const std::string& path) { REQUIRE(sys::mkdirat(output.mount().get(), path, 0755)); }
  std::vector<std::string> back() {
    const auto collected = of.write_back(output, policy.collect);
    REQUIRE(error_of(collected) == "no error");
    std::vector<std::string> refused;
    for (const auto& file : collected->refused) refused.push_back(file.path + ": " + file.reason);
    return refused;
  }
  std::vector<std::string> names() { return *sys::list_directory(sys::kHere, directory); }
  struct stat facts(const std::string& path) {
    struct stat facts {};
    REQUIRE(::lstat((directory + "/" + path).c_str(), &facts) == 0);
    return facts;
  }
};

}  // namespace

TEST_CASE("what the user's directory holds is the candidate's inside, and special files stay out") {
  Place at;
  std::filesystem::create_directories(at.directory + "/a/b");
  at.folder.write("given/a/b/file", "deep");
  at.folder.write("given/tool", "run me");
  REQUIRE(::chmod((at.directory + "/tool").c_str(), 04755) == 0);
  REQUIRE(::chmod((at.directory + "/a").c_str(), 02750) == 0);
  REQUIRE(::symlink("/etc/passwd", (at.directory + "/link").c_str()) == 0);
  REQUIRE(::mkfifo((at.directory + "/fifo").c_str(), 0600) == 0);
  REQUIRE(::mknod((at.directory + "/null").c_str(), S_IFCHR | 0666, 0x103) == 0);
  std::filesystem::create_directory(at.directory + "/.benchsand-output-left");
  CHECK(error_of(at.of.seed(at.output, at.policy)) == "no error");
  CHECK(at.inside("a/b/file") == "deep");
  CHECK(*sys::readlinkat(at.output.mount().get(), "link") == "/etc/passwd");
  CHECK(*sys::list_directory(at.output.mount().get(), ".") == std::vector<std::string>{"a", "link", "tool"});
  for (const char* path : {"a", "a/b", "a/b/file", "tool", "link"}) {
    const auto facts = *sys::fstatat(at.output.mount().get(), path, AT_SYMLINK_NOFOLLOW);
    CHECK(facts.st_uid == kCandidate);
    CHECK(facts.st_gid == kCandidate);
  }
  CHECK((sys::fstatat(at.output.mount().get(), "tool", 0)->st_mode & 07777) == 0755);
  CHECK((sys::fstatat(at.output.mount().get(), "a", 0)->st_mode & 07777) == 0750);
  CHECK(at.of.notices() == std::vector<std::string>{"output: " + at.directory + "/fifo was left out: it is a FIFO",
                                                    "output: " + at.directory + "/null was left out: it is a device"});
  // Untouched, all of it comes back as nothing.
  const auto before = at.facts("tool");
  CHECK(at.back() == std::vector<std::string>{"link: symbolic link"});
  CHECK(at.facts("tool").st_ino == before.st_ino);
  CHECK((at.facts("tool").st_mode & 07777) == 04755);
}

TEST_CASE("a directory that holds more than the disk limit is refused") {
  Place at;
  const std::string limit =
      "output: " + at.directory +
      " holds more than the disk limit (1MiB, 64 files); mount it read-only, or ask for more disk";
  SUBCASE("bytes") {
    at.folder.write("given/big", std::string((1 << 20) + 1, 'x'));
  }
  SUBCASE("a hole") {
    REQUIRE(::truncate(at.folder.write("given/big", "").c_str(), off_t{1} << 40) == 0);
  }
  SUBCASE("files") {
    for (int i = 0; i < 64; ++i) at.folder.write("given/f" + std::to_string(i), "");
  }
  const auto seeded = at.of.seed(at.output, at.policy);
  CHECK(error_of(seeded) == limit);
  CHECK(seeded.error().kind == Error::Kind::usage);
}

TEST_CASE("what is new or changed is written back, as the directory's owner's") {
  Place at;
  at.folder.write("given/same", "same");
  at.folder.write("given/changed", "before");
  at.folder.write("given/mode", "mode");
  at.folder.write("given/deleted", "kept");
  REQUIRE(::link((at.directory + "/changed").c_str(), at.folder.path("elsewhere").c_str()) == 0);
  for (const char* name : {"same", "changed", "mode"}) REQUIRE(::chmod((at.directory + "/" + name).c_str(), 0644) == 0);
  REQUIRE(at.of.seed(at.output, at.policy));
  const auto same = at.facts("same");
  at.write("changed", "after", 0600);
  REQUIRE(::fchmodat(at.output.mount().get(), "mode", 0755, 0) == 0);
  REQUIRE(sys::unlinkat(at.output.mount().get(), "deleted", 0));
  at.make_inside("new");
  at.make_inside("new/deep");
  at.write("new/deep/file", "new");
  CHECK(at.back().empty());
  CHECK(at.outside("changed") == "after");
  CHECK(at.outside("new/deep/file") == "new");
  CHECK(at.outside("deleted") == "kept");
  CHECK(at.facts("same").st_ino == same.st_ino);
  CHECK(at.facts("same").st_uid == 0);
  CHECK((at.facts("mode").st_mode & 07777) == 0755);
  CHECK((at.facts("changed").st_mode & 07777) == 0600);
  for (const char* path : {"changed", "new", "new/deep", "new/deep/file"}) {
    CHECK(at.facts(path).st_uid == 1234);
    CHECK(at.facts(path).st_gid == 1235);
  }
  // The other name of the file keeps what it had.
  CHECK(*sys::read_file(sys::kHere, at.folder.path("elsewhere")) == "before");
  CHECK(at.names() == std::vector<std::string>{"changed", "deleted", "mode", "new", "same"});
}

TEST_CASE("whatever stands in the directory, nothing outside of it is touched") {
  Place at;
  std::filesystem::create_directories(at.folder.path("outside/d"));
  at.folder.write("outside/f", "outside");
  at.folder.write("given/file", "file");
  std::filesystem::create_directory(at.directory + "/dir");
  REQUIRE(::mkfifo((at.directory + "/fifo").c_str(), 0600) == 0);
  for (const char* name : {"out", "relative", "link"})
    REQUIRE(::symlink(std::string(name) == "relative" ? "../outside" : at.folder.path("outside").c_str(),
                      (at.directory + "/" + name).c_str()) == 0);
  // The candidate made directories and files of the same names.
  for (const char* name : {"out", "relative", "file"}) {
    at.make_inside(name);
    at.write(std::string(name) + "/f", "evil");
  }
  for (const char* name : {"link", "dir", "fifo"}) at.write(name, "evil");
  at.write("good", "good");
  CHECK(at.back() == std::vector<std::string>{"dir: not written back: a directory is in its place",
                                              "fifo: not written back: a FIFO is in its place",
                                              "file/f: not written back: a file is in its way",
                                              "link: not written back: a symbolic link is in its place",
                                              "out/f: not written back: a symbolic link is in its way",
                                              "relative/f: not written back: a symbolic link is in its way"});
  CHECK(at.outside("good") == "good");
  CHECK(at.outside("file") == "file");
  CHECK(*sys::read_file(sys::kHere, at.folder.path("outside/f")) == "outside");
  CHECK(*sys::list_directory(sys::kHere, at.folder.path("outside")) == std::vector<std::string>{"d", "f"});
  CHECK(at.names() == std::vector<std::string>{"dir", "fifo", "file", "good", "link", "out", "relative"});
}

TEST_CASE("links, devices and set-user-ID files of the candidate never come back") {
  Place at;
  at.write("s", "setuid", 04755);
  at.write("h1", "hard");
  REQUIRE(::linkat(at.output.mount().get(), "h1", at.output.mount().get(), "h2", 0) == 0);
  REQUIRE(::symlinkat("/etc/passwd", at.output.mount().get(), "l") == 0);
  at.write("x\n; rm -rf $HOME", "a name is bytes");
  CHECK(at.back().size() == 4);
  CHECK(at.names() == std::vector<std::string>{"x\n; rm -rf $HOME"});
}

TEST_CASE("another file system in the directory is neither read nor written, and a full disk replaces nothing") {
  Place at;
  std::filesystem::create_directories(at.directory + "/other");
  const pid_t child = ::fork();  // in a mount namespace of its own
  if (child == 0) {
    const auto need = [](bool good, int code) {
      if (!good) ::_exit(code);
    };
    need(::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", "", MS_REC | MS_PRIVATE, "") == 0, 2);
    need(::mount("none", at.directory.c_str(), "tmpfs", 0, "size=64k") == 0, 3);
    need(std::filesystem::create_directory(at.directory + "/other"), 4);
    need(::mount("none", (at.directory + "/other").c_str(), "tmpfs", 0, "size=64k") == 0, 5);
    at.folder.write("given/other/secret", "secret");
    at.folder.write("given/one", "before");
    auto of = std::move(*ContainerOutput::of_user(at.directory));
    need(of.seed(at.output, at.policy).has_value(), 6);
    need(!*sys::exists(at.output.mount().get(), "other") && of.notices().size() == 1, 7);
    need(of.notices().front().ends_with("/other was left out: another file system is mounted there"), 8);
    at.make_inside("other");
    at.write("other/f", "evil");
    at.write("one", "after");
    at.write("two", std::string(100'000, 'x'));
    const auto full = of.write_back(at.output, at.policy.collect);
    need(error_of(full) == "output: write it back to " + at.directory + ": write two: No space left on device", 9);
    need(at.outside("one") == "before" && at.names() == std::vector<std::string>{"one", "other"}, 10);
    at.write("two", "small");
    const auto back = of.write_back(at.output, at.policy.collect);
    need(back && back->files.size() == 2 && back->refused.size() == 1, 11);
    need(back->refused.front().reason == "not written back: another file system is in its way", 12);
    need(at.outside("one") == "after" && at.names() == std::vector<std::string>{"one", "other", "two"}, 13);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("without a directory of the user's, the output lies in the container's own layer") {
  Place at;
  auto rootfs = sys::open_directory(sys::kHere, at.directory);
  REQUIRE(rootfs);
  auto layer = ContainerOutput::in_layer(*rootfs, "/srv/output");
  REQUIRE(error_of(layer) == "no error");
  at.write("answer", "42");
  CHECK(layer->write_back(at.output, at.policy.collect)->files.size() == 1);
  CHECK(at.outside("srv/output/answer") == "42");
  REQUIRE(::symlink("/tmp", (at.directory + "/link").c_str()) == 0);
  CHECK(error_of(ContainerOutput::in_layer(*rootfs, "/link/output")) ==
        "output: use /link/output of the container: openat2 link: Too many levels of symbolic links; it must be a "
        "directory of the image, and no symbolic link");
  CHECK_FALSE(ContainerOutput::in_layer(*rootfs, "/../x"));
  CHECK(error_of(ContainerOutput::of_user("/nowhere")) ==
        "output: use /nowhere: open /nowhere: No such file or directory");
}
