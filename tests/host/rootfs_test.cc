// Root file systems and inputs: what is refused, and that neither a name nor an archive is trusted twice.
#include "shim/rootfs.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "oci/sha256.h"
#include "shim/private_mount.h"
#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

std::string error_of(const auto& result) {
  return result ? "no error" : result.error().message;
}

}  // namespace

TEST_CASE("a rootfs archive is unpacked once, and cannot reach outside") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("tree/bin"));
  folder.write("tree/bin/program", "p");
  REQUIRE(std::system(("tar -C " + folder.path("tree") + " -cf " + folder.path("good.tar") + " .").c_str()) == 0);
  REQUIRE(std::system(("tar -C " + folder.path("tree") + " -P --transform 's,^./bin,../../escaped,' -cf " +
                       folder.path("bad.tar") + " ./bin")
                          .c_str()) == 0);
  const auto good = open_rootfs(folder.path("good.tar"));
  REQUIRE(good);
  CHECK(std::filesystem::exists(good->path + "/bin/program"));
  CHECK(open_rootfs(folder.path("good.tar"))->path == good->path);
  const auto bad = open_rootfs(folder.path("bad.tar"));
  REQUIRE_FALSE(bad);
  CHECK(bad.error().message.find("..") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists("/var/lib/benchsand/escaped"));
  std::filesystem::remove_all(good->path);
  CHECK(error_of(open_rootfs("/")) == "use / as rootfs: it is this host; give a directory made for the sandbox");
  CHECK(open_rootfs(folder.write("text", "no archive")).error().kind == Error::Kind::usage);
}

TEST_CASE("what a task names on the host is checked all at once") {
  const TempFolder folder;
  Policy policy;
  policy.rootfs = folder.path("none");
  policy.stdin_file = folder.path();
  policy.inputs = {{folder.path("nothing"), "/in"}};
  const auto checked = check_task_files(policy);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().kind == Error::Kind::usage);
  CHECK(checked.error().message ==
        "rootfs: stat " + folder.path("none") + ": No such file or directory\nstdin: " + folder.path() +
            " is not a regular file\ninput for /in: stat " + folder.path("nothing") + ": No such file or directory");
}

TEST_CASE("a rootfs directory is never changed: it has every mount point, or the task is refused") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("rootfs/bin"));
  std::filesystem::create_directories(folder.path("in"));
  folder.write("file", "x");
  const auto message = [&](const std::string& output, const std::string& source, const std::string& target,
                           const std::string& workdir) {
    Policy policy;
    policy.output = output;
    policy.workdir = workdir;
    policy.inputs = {{folder.path(source), target}};
    const auto rootfs = open_rootfs(folder.path("rootfs"));
    REQUIRE(rootfs);
    const auto prepared = prepare_mount_points(*rootfs, policy);
    return prepared ? std::string("ok") : prepared.error().message;
  };
  const std::string root = folder.path("rootfs"), start = "use the rootfs " + root + ": ";
  CHECK(message("/output", "in", "/task", "/nope") ==
        start +
            "it has no /proc, /dev, /output, /task, /nope; benchsand changes nothing in it, so make them: mkdir -p " +
            root + "/proc " + root + "/dev " + root + "/output " + root + "/task " + root + "/nope");
  CHECK(std::distance(std::filesystem::directory_iterator(root), {}) == 1);
  for (const char* name : {"proc", "dev", "output", "task"}) std::filesystem::create_directories(root + "/" + name);
  CHECK(message("/output", "in", "/task", "/output") == "ok");
  CHECK(message("/output", "in", "/task", "/task") == "ok");
  CHECK(message("/output", "in", "/task", "/task/none").find("no such directory in the input") != std::string::npos);
  CHECK(message("/output", "in", "/task", "/output/sub") ==
        "use the workdir /output/sub: the output is empty when the run starts");
  CHECK(message("/output", "file", "/task", "/output") ==
        start + "/task is a directory there, and the input is a file");
  CHECK(message("/output", "file", "/app", "/output") ==
        start + "it has no /app; benchsand changes nothing in it, so make it: touch " + root + "/app");
  std::filesystem::create_directory_symlink("task", root + "/link");
  CHECK(message("/output", "in", "/link", "/output") == start + "/link leads through a symbolic link");
}

TEST_CASE("an input with a socket, FIFO or device is refused, at any depth") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("in/a/b"));
  folder.write("in/a/b/file", "x");
  std::filesystem::create_symlink("/nowhere", folder.path("in/link"));
  Policy policy;
  policy.inputs = {{folder.path("in"), "/task"}};
  CHECK(open_inputs(policy));
  REQUIRE(::mkfifo(folder.path("in/a/b/fifo").c_str(), 0666) == 0);
  CHECK(error_of(open_inputs(policy)) ==
        "mount the input " + folder.path("in") + ": " + folder.path("in") +
            "/a/b/fifo is a socket, FIFO or device, through which a candidate could talk to this host; take it out");
}

TEST_CASE("an input is what was opened, whatever its name leads to later") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("good"));
  std::filesystem::create_directories(folder.path("secret"));
  folder.write("good/file", "good");
  folder.write("secret/file", "secret");
  Policy policy;
  policy.inputs = {{folder.path("good"), "/task"}};
  std::filesystem::create_directories(folder.path("empty"));
  const auto inputs = open_inputs(policy);
  REQUIRE(inputs);
  std::filesystem::rename(folder.path("good"), folder.path("aside"));
  std::filesystem::create_directory_symlink("secret", folder.path("good"));
  const Fd empty = *sys::open_directory(sys::kHere, folder.path("empty"));
  for (const auto kind : {RootfsMount::overlay, RootfsMount::bind}) {
    const auto made = private_mount((*inputs)[0].opened, "in", kind, empty);
    REQUIRE(made);
    CHECK(*sys::read_file(made->mount.get(), "file") == "good");
    // Read-only for root too, so that a delegate makes no mount point in it.
    CHECK(error_of(sys::mkdirat(made->mount.get(), "new", 0755)) == "mkdir new: Read-only file system");
  }
  // A symbolic link in its place is not followed.
  CHECK(open_inputs(policy).error().message.find(folder.path("good")) != std::string::npos);
}

TEST_CASE("a rootfs that others can write to is refused") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("rootfs"));
  const auto rootfs = open_rootfs(folder.path("rootfs"));
  REQUIRE(rootfs);
  REQUIRE(::chmod(folder.path("rootfs").c_str(), 0777) == 0);
  CHECK(error_of(open_rootfs(folder.path("rootfs"))).find("must belong to root and be writable by nobody else") !=
        std::string::npos);
  REQUIRE(::chmod(folder.path("rootfs").c_str(), 0755) == 0);
  REQUIRE(::chown(folder.path("rootfs").c_str(), 65534, 0) == 0);
  CHECK(error_of(open_rootfs(folder.path("rootfs"))).find("chown root") != std::string::npos);
}

TEST_CASE("an archive cannot plant a program for other users, nor open its own top to them") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("tree"));
  folder.write("tree/su", "not really " + folder.path());
  REQUIRE(::chmod(folder.path("tree/su").c_str(), 04755) == 0);
  REQUIRE(::chmod(folder.path("tree").c_str(), 0777) == 0);
  REQUIRE(std::system(("tar -C " + folder.path("tree") + " -cf " + folder.path("t.tar") + " .").c_str()) == 0);
  const auto rootfs = open_rootfs(folder.path("t.tar"));
  REQUIRE(rootfs);
  struct stat top {
  }, cache{};
  REQUIRE(::stat(rootfs->path.c_str(), &top) == 0);
  REQUIRE(::stat(kRootfsCache, &cache) == 0);
  CHECK((top.st_mode & 07777) == 0755);
  CHECK(top.st_uid == 0);
  CHECK((cache.st_mode & 07777) == 0700);
  std::filesystem::remove_all(rootfs->path);
}

TEST_CASE("an archive that changes while it is unpacked is not what its digest says") {
  const TempFolder folder;
  // Large enough that it takes a while; a writer changes its last file meanwhile, again and again.
  REQUIRE(std::system(("mkdir " + folder.path("tree") + " && head -c 80000000 /dev/zero > " +
                       folder.path("tree/a-padding") + " && echo GOOD > " + folder.path("tree/z-answer") +
                       " && tar -C " + folder.path("tree") + " --sort=name -cf " + folder.path("t.tar") + " .")
                          .c_str()) == 0);
  std::string good = *sys::read_file(sys::kHere, folder.path("t.tar"), 100 << 20);
  const std::size_t at = good.rfind("GOOD");
  REQUIRE(at != std::string::npos);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    const Fd file = *sys::openat(sys::kHere, folder.path("t.tar"), O_WRONLY);
    for (bool evil = true; !stop; evil = !evil) {
      static_cast<void>(!::pwrite(file.get(), evil ? "EVIL" : "GOOD", 4, static_cast<off_t>(at)));
      std::this_thread::sleep_for(std::chrono::milliseconds(evil ? 7 : 5));
    }
    static_cast<void>(!::pwrite(file.get(), "GOOD", 4, static_cast<off_t>(at)));
  });
  for (int i = 0; i < 12; ++i) static_cast<void>(open_rootfs(folder.path("t.tar")));
  stop = true;
  writer.join();
  // Whatever was cached meanwhile, under the digest of the good archive there is the good answer.
  const auto rootfs = open_rootfs(folder.path("t.tar"));
  REQUIRE(rootfs);
  CHECK(*sys::read_file(rootfs->dir.get(), "z-answer") == "GOOD\n");
  for (const auto& entry : std::filesystem::directory_iterator(kRootfsCache)) {
    std::ifstream answer(entry.path() / "z-answer");
    const std::string text{std::istreambuf_iterator<char>(answer), {}};
    if (text != "GOOD\n" && text != "EVIL\n") continue;
    good.replace(at, 4, text.substr(0, 4));
    CHECK(entry.path().filename().string() == sha256_hex(good));
    std::filesystem::remove_all(entry.path());
  }
}
