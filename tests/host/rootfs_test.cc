// Root file systems and inputs: what is refused, and that neither a name nor an archive is trusted twice.
#include "shim/rootfs.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "oci/sha256.h"
#include "shim/place_layer.h"
#include "shim/private_mount.h"
#include "shim/result_folder.h"
#include "shim/rootfs_cache.h"
#include "shim/run_folder.h"
#include "shim/stdio.h"
#include "shim/unpack_cache.h"
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
  policy.places["rootfs"] = "task.yaml:4:9: ";
  const std::string kGone = " is not there; make it, or correct the path (a relative one begins at the task's folder)";
  const auto checked = check_task_files(policy);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().kind == Error::Kind::usage);
  CHECK(checked.error().message == "task.yaml:4:9: rootfs: " + folder.path("none") + kGone +
                                       "\nstdin: " + folder.path() +
                                       " is not a regular file\ninput for /in: " + folder.path("nothing") + kGone);
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
    auto rootfs = open_rootfs(folder.path("rootfs"));
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

TEST_CASE("an unpacked rootfs is never changed: what it lacks is in a layer, which looks like it") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("tree/there/in"));
  folder.write("tree/file", "x");
  folder.write("source", "x");
  REQUIRE(::chmod(folder.path("tree/there").c_str(), 02751) == 0);
  REQUIRE(::chown(folder.path("tree/there").c_str(), 7, 8) == 0);
  REQUIRE(::chmod(folder.path("tree/there").c_str(), 02751) == 0);
  const timespec times[] = {{1000, 0}, {2000, 5}};
  for (const char* name : {"tree/there/in", "tree/there"})
    REQUIRE(::utimensat(AT_FDCWD, folder.path(name).c_str(), times, 0) == 0);
  REQUIRE(std::system(("tar -C " + folder.path("tree") + " -cf " + folder.path("t.tar") + " .").c_str()) == 0);
  auto rootfs = *open_rootfs(folder.path("t.tar"));
  Policy policy;
  policy.output = "/there/in/out";
  policy.workdir = "/";
  policy.inputs = {{folder.path("source"), "/there/new/deep/file"}};
  CHECK(prepare_mount_points(rootfs, policy));
  const std::string layer = folder.path("layer");
  std::filesystem::create_directories(layer);
  CHECK(fill_place_layer(rootfs, *sys::open_directory(sys::kHere, layer)));
  CHECK(std::distance(std::filesystem::recursive_directory_iterator(rootfs.path), {}) == 3);
  const auto facts = [&](const std::string& name) {
    return *sys::fstatat(sys::kHere, layer + name, AT_SYMLINK_NOFOLLOW);
  };
  for (const char* name : {"", "/there", "/there/in"}) {
    const auto real = *sys::fstatat(sys::kHere, rootfs.path + name, 0), made = facts(name);
    CHECK(std::tuple(made.st_mode, made.st_uid, made.st_gid, made.st_mtim.tv_sec, made.st_mtim.tv_nsec) ==
          std::tuple(real.st_mode, real.st_uid, real.st_gid, real.st_mtim.tv_sec, real.st_mtim.tv_nsec));
  }
  CHECK(facts("/there").st_mode == (S_IFDIR | 02751));
  CHECK(facts("/there/in/out").st_mode == (S_IFDIR | 0755));
  CHECK(facts("/there/new").st_uid == 0);
  CHECK(facts("/there/new").st_mtim.tv_sec == 2000);
  CHECK(facts("/there/new/deep/file").st_mode == (S_IFREG | 0644));
  const std::string lacks = "use the rootfs " + rootfs.path +
                            ": it has no /proc, /dev, /there/in/out, /there/new/deep/file; it is unpacked for every "
                            "run of it, so benchsand changes nothing there; add what is missing to the archive or "
                            "image, or unpack it into a directory of your own";
  CHECK(error_of(require_nothing_to_lay_over(rootfs)) == lacks);
  policy.rootfs_mount = RootfsMount::bind;
  CHECK(error_of(prepare_mount_points(rootfs, policy)) == lacks + ", or use a profile that says rootfs_mount: overlay");
  rootfs.to_lay_over = {{"/file/below/it"}};
  CHECK(error_of(fill_place_layer(rootfs, *sys::open_directory(sys::kHere, layer))) ==
        "use the rootfs " + rootfs.path + ": it cannot have /file/below/it, for file on the way is no directory");
  std::filesystem::remove_all(rootfs.path);
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

namespace {

// A tar with one entry of any type and name, which tar itself would not make.
std::string tar_with(const TempFolder& folder, const std::string& name, const std::string& type,
                     const std::string& link, int mode = 0777) {
  const std::string path = folder.path("top.tar");
  const std::string program =
      "import sys, tarfile\n"
      "entry = tarfile.TarInfo('x')\n"
      "entry.type, entry.linkname, entry.mode, entry.uid = sys.argv[3].encode(), sys.argv[4], int(sys.argv[5]), 1234\n"
      "block = bytearray(entry.tobuf(tarfile.USTAR_FORMAT))\n"
      "block[0:100] = sys.argv[2].encode().ljust(100, b'\\0')\n"
      "block[148:156] = b' ' * 8\n"
      "block[148:156] = b'%06o\\0 ' % sum(block[:512])\n"
      "open(sys.argv[1], 'wb').write(bytes(block) + bytes(10240))\n";
  folder.write("make.py", program);
  const std::string command = "python3 " + folder.path("make.py") + " " + path + " '" + name + "' " + type + " '" +
                              link + "' " + std::to_string(mode);
  REQUIRE(std::system(command.c_str()) == 0);
  return path;
}

std::string cached_name(const std::string& tar) {
  return std::string(kRootfsCache) + "/" + sha256_hex(*sys::read_file(sys::kHere, tar));
}

}  // namespace

TEST_CASE("an archive cannot say what its top is") {
  const TempFolder folder;
  const std::string victim = folder.path("victim");
  std::filesystem::create_directories(victim);
  REQUIRE(::chmod(victim.c_str(), 0750) == 0);
  REQUIRE(::chown(victim.c_str(), 1234, 1234) == 0);
  for (const std::string name : {"./", ".", "/", "./.", ".//./", "//", ""}) {
    // Symbolic link, hard link, regular file, character device, FIFO.
    for (const std::string type : {"2", "1", "0", "3", "6"}) {
      CAPTURE(name);
      CAPTURE(type);
      const std::string tar = tar_with(folder, name, type, type == "1" ? "etc" : type == "2" ? victim : "");
      const auto opened = open_rootfs(tar);
      // libarchive reads a file whose name ends in a slash as a directory, and nothing at all without a name.
      if (opened) {
        CHECK(type != "2");
        CHECK(opened->path == cached_name(tar));
        CHECK(std::filesystem::is_empty(opened->path));
      } else {
        CHECK(opened.error().kind == Error::Kind::usage);
        CHECK(opened.error().message == "unpack the rootfs " + tar + ": its entry \"" + name +
                                            "\" is the top of the tree and not a directory; make the archive of a "
                                            "directory's content");
      }
      std::filesystem::remove_all(cached_name(tar));
    }
    const std::string tar = tar_with(folder, name, "5", "", 0777);
    const auto opened = open_rootfs(tar);
    REQUIRE(opened);
    const auto top = *sys::fstat(opened->dir, "top");
    CHECK((top.st_mode & 07777) == 0755);
    CHECK(top.st_uid == 0);
    std::filesystem::remove_all(opened->path);
  }
  const auto facts = *sys::fstatat(sys::kHere, victim, 0);
  CHECK((facts.st_mode & 07777) == 0750);
  CHECK(facts.st_uid == 1234);
  CHECK(std::filesystem::is_empty(victim));
}

TEST_CASE("what an older version left as a cached rootfs is not followed, and gc goes on past it") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("victim"));
  const std::string tar = tar_with(folder, "bin", "5", ""), ready = cached_name(tar), half = ready + ".0123456789ab";
  std::filesystem::remove_all(ready);
  std::filesystem::create_directory_symlink(folder.path("victim"), ready);
  const auto opened = open_rootfs(tar);
  CHECK(error_of(opened) == "use the unpacked rootfs " + ready +
                                ": not a directory, and benchsand makes nothing else there; remove it: rm " + ready);
  CHECK(opened.error().kind == Error::Kind::usage);
  std::filesystem::create_directory_symlink(folder.path("victim"), half);
  std::filesystem::create_directory(half + "c");
  const auto lines = collect_rootfs_garbage();
  REQUIRE(lines);
  for (const std::string& expected :
       {"removed " + ready + ": it was not a directory", "removed " + half + ": it was not a directory",
        "cleared the half unpacked " + half + "c"})
    CHECK(std::find(lines->begin(), lines->end(), expected) != lines->end());
  CHECK(std::filesystem::exists(folder.path("victim")));
  CHECK(open_rootfs(tar));
  std::filesystem::remove_all(ready);
}

TEST_CASE("what an older version unpacked is used by nobody, and gc removes it") {
  const TempFolder folder;
  const std::string tar = tar_with(folder, "bin", "5", ""), ready = cached_name(tar), old = std::string(kRootfsCache);
  REQUIRE(open_rootfs(tar));
  std::filesystem::create_directories(ready + "/opt/evil");
  std::filesystem::remove(old + ".2");
  CHECK_FALSE(*UnpackCache::find(old, "rootfs"));
  CHECK(std::distance(std::filesystem::directory_iterator(open_rootfs(tar)->path), {}) == 1);
  std::string aside;
  for (const auto& entry : std::filesystem::directory_iterator(kStateBase))
    if (std::filesystem::exists(entry.path() / ready.substr(old.size() + 1) / "opt")) aside = entry.path();
  REQUIRE(aside.starts_with(old + ".older-"));
  const auto removed = [&] {
    const auto lines = *collect_rootfs_garbage();
    return std::count(lines.begin(), lines.end(), "removed " + aside + ": an older benchsand had unpacked it") == 1;
  };
  {
    const auto run = RunFolder::create();
    CHECK_FALSE(removed());
    CHECK(run->remove());
  }
  const bool idle = all_runs()->empty();  // somebody else may run something here
  CHECK((removed() || !idle));
  std::filesystem::remove_all(aside);
  std::filesystem::remove_all(ready);
}

TEST_CASE("files that are inputs by themselves may have 256 MiB together, as their sizes say") {
  const TempFolder folder;
  folder.write("large", "");
  folder.write("small", "");
  REQUIRE(::truncate(folder.path("large").c_str(), 200 << 20) == 0);
  REQUIRE(::truncate(folder.path("small").c_str(), 56 << 20) == 0);
  Policy policy;
  policy.inputs = {{folder.path("small"), "/a"}, {folder.path("large"), "/b"}};
  CHECK(open_inputs(policy));
  REQUIRE(::truncate(folder.path("small").c_str(), (56 << 20) + 1) == 0);
  const auto refused = open_inputs(policy);
  CHECK(error_of(refused) ==
        "mount the input " + folder.path("large") +
            " (209715200 bytes): inputs that are files alone are copied into memory for the run, and they may have 256 "
            "MiB in all; give its directory as the input, which copies nothing");
  CHECK(refused.error().kind == Error::Kind::usage);
  // The same file again is copied again.
  policy.inputs = {{folder.path("large"), "/a"}, {folder.path("large"), "/b"}};
  CHECK_FALSE(open_inputs(policy));
  policy.rootfs_mount = RootfsMount::bind;
  CHECK(open_inputs(policy));
  policy.rootfs_mount = RootfsMount::overlay;
  policy.inputs = {{folder.path(), "/a"}};
  CHECK(open_inputs(policy));
}

TEST_CASE("what the kernel makes up as it is read is no input, rootfs or stdin") {
  const std::string why =
      ", where the kernel makes up what is read; copy what the task needs to a file system of the host";
  Policy policy;
  for (const auto& [path, name] :
       {std::pair{"/proc/self/environ", "proc"}, {"/proc/sys/kernel", "proc"}, {"/sys/kernel", "sysfs"}}) {
    policy.inputs = {{path, "/a"}};
    const auto refused = open_inputs(policy);
    CHECK(error_of(refused) == std::string("mount the input ") + path + ": it lies on " + name + why);
    CHECK(refused.error().kind == Error::Kind::usage);
  }
  CHECK(error_of(open_rootfs("/sys/kernel")) == "use the rootfs /sys/kernel: it lies on sysfs" + why);
  CHECK(error_of(open_rootfs("/proc/sys")) == "use the rootfs /proc/sys: it lies on proc" + why);
  CHECK(error_of(standard_input("/proc/self/environ")) == "use /proc/self/environ as stdin: it lies on proc" + why);
}

TEST_CASE("results lie in nothing that a candidate can read, whatever they are called") {
  const TempFolder folder;
  for (const char* name : {"in/a/b", "rootfs/x", "out"}) std::filesystem::create_directories(folder.path(name));
  folder.write("file", "x");
  std::filesystem::create_directory_symlink("in/a", folder.path("link"));
  Policy policy;
  policy.inputs = {{folder.path("file"), "/file"}, {folder.path("in"), "/task"}};
  const auto rootfs = open_rootfs(folder.path("rootfs"));
  const auto inputs = open_inputs(policy);
  REQUIRE(rootfs);
  REQUIRE(inputs);
  const auto message = [&](const std::string& results) {
    const auto apart = require_results_apart(results, *rootfs, *inputs);
    if (!apart) CHECK(apart.error().kind == Error::Kind::usage);
    return error_of(apart);
  };
  const auto refusal = [&](const std::string& results, const std::string& what) {
    return "keep results in '" + results + "': it lies in the " + what +
           ", where the next candidate would read them; choose another place with --out";
  };
  for (const char* name : {"in", "in/", "in/a/b", "in/not/yet", "link", "link/b/not-yet", "out/../in/x"}) {
    const std::string results = folder.path(name);
    CHECK(message(results) == refusal(results, "input " + folder.path("in")));
  }
  CHECK(message(folder.path("rootfs/x/y")) == refusal(folder.path("rootfs/x/y"), "rootfs " + folder.path("rootfs")));
  for (const char* name : {"out", "out/new", "input", "new/in"}) CHECK(message(folder.path(name)) == "no error");
  CHECK_FALSE(std::filesystem::exists(folder.path("in/not")));
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
