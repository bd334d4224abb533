// Images that are unpacked: once, by whoever is first; removed when nobody uses them; looked over; and trees as archives.
#include "shim/image_cache.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "oci/sha256.h"
#include "shim/image_commands.h"
#include "shim/image_look.h"
#include "shim/rootfs.h"
#include "shim/tree_tar.h"
#include "shim/tree_writer.h"
#include "support.h"
#include "tar_maker.h"

using namespace benchsand;
using namespace benchsand::support;
using nlohmann::json;

namespace {

std::string digest_of(const std::string& bytes) {
  return "sha256:" + sha256_hex(bytes);
}

// An OCI layout; what is different in each test run is in a file of the first layer.
struct Layout {
  TempFolder folder;
  std::string config;

  explicit Layout(std::vector<std::vector<TarEntry>> layers = {{{"a", '0', "1"}}, {{"b", '0', "2"}}}) {
    layers[0].push_back({"token", '0', folder.path()});
    json diff_ids = json::array(), parts = json::array();
    for (const auto& entries : layers) {
      const std::string tar = tar_of(entries);
      diff_ids.push_back(digest_of(tar));
      parts.push_back(blob(tar, "application/vnd.oci.image.layer.v1.tar"));
    }
    config = json{{"os", "linux"},
                  {"architecture", image_architecture()},
                  {"rootfs", {{"type", "layers"}, {"diff_ids", diff_ids}}}}
                 .dump();
    const json manifest = {
        {"schemaVersion", 2}, {"config", blob(config, "application/vnd.oci.image.config.v1+json")}, {"layers", parts}};
    const json index = {{"schemaVersion", 2},
                        {"manifests", {blob(manifest.dump(), "application/vnd.oci.image.manifest.v1+json")}}};
    folder.write("image/index.json", index.dump());
    folder.write("image/oci-layout", R"({"imageLayoutVersion": "1.0.0"})");
  }
  ~Layout() { std::filesystem::remove_all(place()); }

  json blob(const std::string& bytes, const std::string& type) {
    std::filesystem::create_directories(folder.path("image/blobs/sha256"));
    folder.write("image/blobs/sha256/" + sha256_hex(bytes), bytes);
    return {{"mediaType", type}, {"digest", digest_of(bytes)}, {"size", bytes.size()}};
  }
  std::string hex() const { return sha256_hex(config); }
  std::string place() const { return std::string(kImageCache) + "/" + hex(); }
  ImageRef reference() const { return {ImageForm::oci, folder.path("image"), "", ""}; }
  Result<UsedImage> take() const { return ImageCache::make()->take(TRY(ImageSource::open(reference())), "name"); }
};

std::string error_of(const auto& result) {
  return result ? "no error" : result.error().message;
}

// As if it had not been used for 20 years, which no other image of this machine is.
std::string pruned(const Layout& layout) {
  const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ::utimensat(AT_FDCWD, (layout.place() + "/used").c_str(), times, 0);
  const auto done = serve_images({ImageRequest::Verb::prune, {}, "170000h", {}});
  return done ? *done : done.error().message;
}

std::string removed(const std::string& wanted) {
  const auto done = serve_images({ImageRequest::Verb::remove, {wanted}, "", {}});
  return done ? *done : done.error().message;
}

}  // namespace

TEST_CASE("an image is unpacked once, and found by every name it was asked by") {
  const Layout layout;
  const auto first = layout.take();
  REQUIRE_MESSAGE(first, error_of(first));
  CHECK(first->entry.digest == "sha256:" + layout.hex());
  CHECK(*sys::read_file(first->rootfs.get(), "a") == "1");
  CHECK(*sys::read_file(first->rootfs.get(), "b") == "2");
  const auto inode = sys::fstat(first->rootfs, "first")->st_ino;
  CHECK(sys::fstat(layout.take()->rootfs, "second")->st_ino == inode);
  const auto named = ImageCache::make()->use("sha256:" + layout.hex(), "other");
  REQUIRE(named);
  CHECK((*named)->entry.names == std::vector<std::string>{"name", "other"});
  CHECK((std::filesystem::status(layout.place()).permissions() & std::filesystem::perms::others_all) ==
        std::filesystem::perms::none);
}

TEST_CASE("of many that want a new image one unpacks it") {
  const Layout layout({{{"large", '0', std::string(32 << 20, 'x')}}});
  std::vector<ino_t> inodes(4);
  std::vector<std::thread> threads;
  std::atomic<std::size_t> waited_for = inodes.size();
  for (auto& inode : inodes)
    threads.emplace_back([&] {
      const auto image = layout.take();
      if (image) inode = sys::fstat(image->rootfs, "rootfs")->st_ino;
      --waited_for;
    });
  std::set<std::string> unpackings;
  while (waited_for > 0) {
    const auto names = sys::list_directory(sys::kHere, kImageCache);
    for (const auto& name : *names)
      if (name.starts_with(layout.hex() + ".")) unpackings.insert(name);
  }
  for (auto& thread : threads) thread.join();
  CHECK(unpackings.size() == 1);
  CHECK(inodes == std::vector<ino_t>(4, inodes[0]));
  CHECK(inodes[0] != 0);
}

TEST_CASE("a file of an archive is measured before it is read") {
  const TempFolder folder;
  const std::uint64_t most = TreeBounds{}.bytes;
  for (const std::uint64_t size : {most + 1, most}) {
    folder.write("a.tar", tar_of({{"blobs/sha256/x", '0', "", "", 0644, {{"size", std::to_string(size)}}}}));
    const auto opened = ImageSource::open({ImageForm::oci, folder.path("a.tar"), "", ""});
    CHECK(error_of(opened).ends_with(": it is larger than benchsand unpacks"));
  }
  folder.write("a.tar", tar_of({{"blobs/sha256/x", '0', "", "", 0644, {{"size", std::to_string(most / 2)}}}}));
  CHECK(!error_of(ImageSource::open({ImageForm::oci, folder.path("a.tar"), "", ""}))
             .ends_with(": it is larger than benchsand unpacks"));
}

TEST_CASE("an image that is used is removed by nobody") {
  const Layout layout;
  {
    const auto image = layout.take();
    REQUIRE(image);
    CHECK(removed(layout.hex()) == "remove the image " + layout.hex() + ": a run uses it");
    const auto listed = serve_images({ImageRequest::Verb::list, {}, "", {}});
    REQUIRE(listed);
    CHECK(listed->find(layout.hex().substr(0, 12)) != std::string::npos);
    CHECK(pruned(layout) == "nothing to remove\n");
    CHECK(std::filesystem::exists(layout.place()));
  }
  REQUIRE(layout.take());
  CHECK(*serve_images({ImageRequest::Verb::prune, {}, "170000h", {}}) == "nothing to remove\n");
  CHECK(error_of(serve_images({ImageRequest::Verb::prune, {}, "1 day", {}})).starts_with("--unused-for: "));
  CHECK(removed(layout.hex()) == "removed " + layout.hex() + "\n");
  CHECK_FALSE(std::filesystem::exists(layout.place()));
  CHECK(removed(layout.hex()).starts_with("find the image "));
  REQUIRE(layout.take());
  CHECK(pruned(layout).starts_with("removed " + layout.hex() + "\n"));
}

TEST_CASE("a process that uses an image and is killed uses it no more") {
  const Layout layout;
  REQUIRE(layout.take());
  const auto pipe = *sys::pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto image = layout.take();
    static_cast<void>(::write(pipe.write.get(), "x", 1));
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(pipe.read.get(), &byte, 1) == 1);
  CHECK(removed(layout.hex()).ends_with("a run uses it"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(removed(layout.hex()).starts_with("removed"));
}

TEST_CASE("an entry that cannot be read is no image, and prune removes it") {
  const Layout layout;
  REQUIRE(layout.take());
  for (const std::string text : {"", "{}", "garbage"}) {
    REQUIRE(sys::replace_file(layout.place() + "/image.json", text, 0600));
    CHECK_FALSE(layout.take().has_value());
  }
  CHECK(pruned(layout).starts_with("removed " + layout.hex() + "\n"));
  CHECK(layout.take());
}

TEST_CASE("documents that do not belong together make no image") {
  const auto spoiled = [](const std::string& what, const std::function<void(std::string&)>& change) {
    const Layout layout;
    for (const auto& file : std::filesystem::directory_iterator(layout.folder.path("image/blobs/sha256"))) {
      std::string text = *sys::read_file(sys::kHere, file.path());
      if (text.find(what) == std::string::npos) continue;
      change(text);
      std::filesystem::remove(file.path());
      layout.folder.write("image/blobs/sha256/" + file.path().filename().string(), text);
    }
    const auto image = layout.take();
    CHECK_FALSE(std::filesystem::exists(layout.place()));
    return image ? std::string("taken") : image.error().message;
  };
  CHECK(spoiled("diff_ids", [](std::string& text) { text += " "; }).find("is expected to have its name as digest") !=
        std::string::npos);
  CHECK(spoiled("schemaVersion", [](std::string& text) {
          text.replace(text.find("\"size\":"), 8, "\"size\":1");
        }).find("is expected to have its name as digest") != std::string::npos);
  CHECK(spoiled("ustar", [](std::string& text) { text += std::string(512, '\0'); }).find("expected the digest") !=
        std::string::npos);
  const Layout layout;
  std::filesystem::rename(layout.folder.path("image/blobs"), layout.folder.path("elsewhere"));
  CHECK(error_of(layout.take()).find("it has no file \"blobs/sha256/") != std::string::npos);
  // No link of a layout is followed.
  std::filesystem::create_directory_symlink("../elsewhere", layout.folder.path("image/blobs"));
  CHECK(error_of(layout.take()).find("Too many levels of symbolic links") != std::string::npos);
  ImageRef fifo = layout.reference();
  fifo.path = layout.folder.path("fifo");
  REQUIRE(::mkfifo(fifo.path.c_str(), 0600) == 0);
  CHECK(error_of(ImageSource::open(fifo)).ends_with("neither a directory nor a regular file"));
}

TEST_CASE("what may give answers or secrets away is a notice of the image") {
  const std::string head(40, '1'), after(40, '2');
  const Layout layout({{{"repo/.git/HEAD", '0', "ref: refs/heads/main\n"},
                        {"repo/.git/objects", '5'},
                        {"repo/.git/refs/heads/main", '0', head + "\n"},
                        {"repo/.git/refs/remotes/origin/fix", '0', after + "\n"},
                        {"clean/.git/HEAD", '0', head + "\n"},
                        {"clean/.git/objects", '5'},
                        {"clean/.git/refs", '5'},
                        {"keys/id_rsa", '0', "-----BEGIN RSA PRIVATE KEY-----\n"},
                        {"keys/id_rsa.pub", '0', "ssh-rsa"},
                        {"var/run/docker.sock", '6'},
                        {"bin/su", '0', "x", "", 04755}}});
  const auto image = layout.take();
  REQUIRE(image);
  CHECK(image->entry.notices ==
        std::vector<std::string>{"image: devices, sockets and FIFOs are left out: \"/var/run/docker.sock\"",
                                 "image: the history in \"/repo/.git\" may reach beyond HEAD, where answers are: "
                                 "\"refs/remotes/origin/fix\"",
                                 "image: looks like a secret: \"/keys/id_rsa\"",
                                 "image: an engine's socket has its place here: \"/var/run/docker.sock\"",
                                 "image: set-user-ID programs are without effect: \"/bin/su\""});
  CHECK(look_over_image(image->rootfs, 0).cut_short);
  CHECK_FALSE(look_over_image(image->rootfs).cut_short);
}

TEST_CASE("a tree as an archive is the same tree when it is unpacked") {
  const TempFolder folder;
  const Fd from =
      *sys::open_directory(sys::kHere, (std::filesystem::create_directories(folder.path("from")), folder.path("from")));
  const std::string long_name(200, 'n'), large(200'001, 'x');
  folder.write("source.tar", tar_of({{"d", '5', "", "", 01777},
                                     {"d/large", '0', large, "", 04711},
                                     {"empty", '0', ""},
                                     {"linked", '1', "", "d/large"},
                                     {"l", '2', "", "../../outside"},
                                     {"x", '0', "long", "", 0600, {{"path", long_name + "/" + long_name}}},
                                     {"raw\xfe", '0', "3"}}));
  const auto unpack = [](const Fd& file, const Fd& top) {
    auto tar = TarReader::open(file, "T", TreeBounds{}.bytes);
    REQUIRE(tar);
    const auto done = TreeWriter(top).apply(*tar, Layering::none);
    CHECK_MESSAGE(done, error_of(done));
    CHECK(tar->finish());
  };
  unpack(*sys::openat(sys::kHere, folder.path("source.tar"), O_RDONLY), from);
  REQUIRE(::mkfifo(folder.path("from/fifo").c_str(), 0600) == 0);
  auto tree = TreeTar::of(from);
  REQUIRE(tree);
  std::string bytes;
  char buffer[1000];
  for (std::size_t n = 1; n != 0; bytes.append(buffer, n)) n = *tree->read(buffer, sizeof buffer);
  CHECK(bytes.size() % 512 == 0);
  folder.write("made.tar", bytes);
  std::filesystem::create_directories(folder.path("to"));
  const Fd to = *sys::open_directory(sys::kHere, folder.path("to"));
  unpack(*sys::openat(sys::kHere, folder.path("made.tar"), O_RDONLY), to);
  std::filesystem::remove(folder.path("from/fifo"));
  // Names, kinds, modes, owners, links, times and content.
  const std::string list =
      "find . -mindepth 1 -printf '%P %y %m %U %G %l %n %Ts\\n' | sort; find . -type f -exec md5sum {} + | sort";
  for (const std::string name : {"from", "to"})
    CHECK(std::system(("cd " + folder.path(name) + " && (" + list + ") > " + folder.path(name + ".list")).c_str()) ==
          0);
  const std::string made = *sys::read_file(sys::kHere, folder.path("to.list"));
  CHECK(made == *sys::read_file(sys::kHere, folder.path("from.list")));
  CHECK(made.find("linked f 4711") != std::string::npos);
}

TEST_CASE("the fingerprint of a tree changes with everything in it") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("t/d"));
  folder.write("t/d/f", "1");
  const Fd top = *sys::open_directory(sys::kHere, folder.path("t"));
  std::set<std::string> seen;
  const auto changed = [&] { return seen.insert(*tree_fingerprint(top)).second; };
  CHECK(changed());
  CHECK_FALSE(changed());
  const auto when = sys::fstatat(top.get(), "d/f", 0)->st_mtim;
  // Kernels before 6.13 know the time of a change to a tick only.
  const auto changed_at = [&](const char* name) { return sys::fstatat(top.get(), name, 0)->st_ctim; };
  const auto same = [](const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; };
  do folder.write("t/../clock", "x");
  while (same(changed_at("../clock"), changed_at("d/f")));
  // In place, of the same size, and made to look as old.
  REQUIRE(sys::write_file(top.get(), "d/f", "2"));
  const timespec times[2] = {when, when};
  REQUIRE(::utimensat(top.get(), "d/f", times, 0) == 0);
  CHECK(changed());
  REQUIRE(::chmod(folder.path("t/d/f").c_str(), 0600) == 0);
  CHECK(changed());
  std::filesystem::rename(folder.path("t/d/f"), folder.path("t/d/g"));
  CHECK(changed());
  std::filesystem::create_symlink("g", folder.path("t/d/l"));
  CHECK(changed());
}
