// What an archive says, against a directory that it must not leave: one attack after the other.
#include "shim/tree_writer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "support.h"
#include "tar_maker.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

// A directory to unpack into, and beside it one that no archive may touch.
struct Ground {
  TempFolder folder;
  Fd top;
  TreeBounds bounds;
  LeftOut left_out;

  Ground() {
    std::filesystem::create_directories(folder.path("top"));
    std::filesystem::create_directories(folder.path("victim"));
    folder.write("victim/secret", "secret");
    top = *sys::open_directory(sys::kHere, folder.path("top"));
  }

  std::string unpack(const std::string& tar, Layering layering = Layering::none) {
    std::filesystem::remove(folder.path("t.tar"));
    folder.write("t.tar", tar);
    const Fd file = *sys::openat(sys::kHere, folder.path("t.tar"), O_RDONLY);
    auto reader = TarReader::open(file, "T", bounds.bytes);
    if (!reader) return reader.error().message;
    TreeWriter writer(top, bounds);
    const auto done = writer.apply(*reader, layering);
    left_out = writer.left_out();
    CHECK(victim_is_untouched());
    if (!done) return done.error().message;
    const auto digests = reader->finish();
    return digests ? "ok" : digests.error().message;
  }
  std::string unpack(const std::vector<TarEntry>& entries, Layering layering = Layering::none) {
    return unpack(tar_of(entries), layering);
  }
  std::string layer(const std::vector<TarEntry>& entries) { return unpack(entries, Layering::whiteouts); }

  bool victim_is_untouched() const {
    return std::distance(std::filesystem::directory_iterator(folder.path("victim")), {}) == 1 &&
           *sys::read_file(sys::kHere, folder.path("victim/secret")) == "secret" &&
           std::filesystem::hard_link_count(folder.path("victim/secret")) == 1;
  }

  std::string content(const std::string& name) const {
    const auto text = sys::read_file(top.get(), name);
    return text ? *text : "none";
  }
  // Every name below the top, a directory with a slash.
  std::string names() const {
    std::vector<std::string> list;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path("top")))
      list.push_back(entry.path().lexically_relative(folder.path("top")).string() +
                     (entry.is_directory() && !entry.is_symlink() ? "/" : ""));
    std::sort(list.begin(), list.end());
    std::string text;
    for (const auto& name : list) text += (text.empty() ? "" : " ") + name;
    return text;
  }
};

std::string refused(const std::string& name, const std::string& why) {
  return "unpack T: its entry \"" + name + "\" " + why;
}

}  // namespace

TEST_CASE("a name cannot lead upward, and an absolute one is meant inside") {
  Ground ground;
  for (const std::string name : {"../victim/x", "a/../../victim/x", "/../victim/x", "a/..", ".."})
    CHECK(ground.unpack({{name, '0', "x"}}) == refused(name, "leads upward with \"..\""));
  CHECK(ground.unpack({{ground.folder.path("victim/secret"), '0', "x"}, {"//etc/./passwd", '0', "y"}}) == "ok");
  CHECK(ground.content(ground.folder.path("victim/secret").substr(1)) == "x");
  CHECK(ground.content("etc/passwd") == "y");
}

TEST_CASE("a symbolic link leads no later entry outside") {
  const std::vector<std::function<std::vector<TarEntry>(const std::string&)>> attacks = {
      [](const std::string& victim) {
        return std::vector<TarEntry>{{"a", '2', "", victim}, {"a/x", '0', "x"}};
      },
      [](const std::string&) {
        return std::vector<TarEntry>{{"a", '2', "", "../victim"}, {"a/x", '0', "x"}};
      },
      [](const std::string&) {
        return std::vector<TarEntry>{{"d", '5'}, {"d/a", '2', "", "../../victim"}, {"d/a/x/y", '0', "x"}};
      },
      [](const std::string&) {
        return std::vector<TarEntry>{{"a", '2', "", "."}, {"a/b", '2', "", ".."}, {"b/victim/x", '0', "x"}};
      },
      [](const std::string&) {
        return std::vector<TarEntry>{{"a", '2', "", "/proc/self/cwd"}, {"a/x", '0', "x"}};
      },
      [](const std::string& victim) {
        return std::vector<TarEntry>{{"a", '2', "", victim + "/secret"}, {"a", '0', "overwritten"}};
      },
      [](const std::string& victim) {
        return std::vector<TarEntry>{{"a", '2', "", victim}, {"a", '5', "", "", 0777}, {"a/x", '0', "x"}};
      },
  };
  for (const auto& attack : attacks) {
    Ground ground;
    static_cast<void>(ground.unpack(attack(ground.folder.path("victim"))));
    CHECK((std::filesystem::status(ground.folder.path("victim")).permissions() &
           std::filesystem::perms::others_write) == std::filesystem::perms::none);
  }
  // Inside it is followed, as the image's own programs will follow it.
  Ground ground;
  CHECK(ground.unpack({{"usr/lib", '5'}, {"lib", '2', "", "usr/lib"}, {"abs", '2', "", "/usr"}}) == "ok");
  CHECK(ground.unpack({{"lib/a", '0', "1"}, {"abs/lib/b", '0', "2"}}) == "ok");
  CHECK(ground.names() == "abs lib usr/ usr/lib/ usr/lib/a usr/lib/b");
  CHECK(ground.unpack({{"n", '2', "", "/nowhere"}, {"n/x", '0', "x"}}) ==
        refused("n", "goes through \"n\", a symbolic link that leads nowhere"));
  CHECK(ground.unpack({{"c", '2', "", "c"}, {"c/x", '0', "x"}}) ==
        refused("c/x", "lies behind symbolic links that lead in a circle"));
}

TEST_CASE("a hard link is to what is inside, and never written through") {
  Ground ground;
  const std::string victim = ground.folder.path("victim/secret");
  CHECK(ground.unpack({{"a", '1', "", "../victim/secret"}}) == refused("../victim/secret", "leads upward with \"..\""));
  CHECK(ground.unpack({{"a", '1', "", victim}}) == refused("a", "is a link to \"" + victim + "\", which is not there"));
  CHECK(ground.unpack({{"s", '2', "", ground.folder.path("victim")}, {"a", '1', "", "s/secret"}}) ==
        refused("a", "is a link to \"s/secret\", which is not there"));
  CHECK(ground.unpack({{"d", '5'}, {"a", '1', "", "d"}}) == refused("a", "is a link to the directory \"d\""));
  CHECK(ground.unpack({{"a", '1', "", "/"}}) == refused("a", "is a link to the top of the tree"));
  // To the link itself, not to where it leads.
  CHECK(ground.unpack({{"s", '2', "", victim}, {"l", '1', "", "s"}, {"l", '0', "overwritten"}}) == "ok");
  CHECK(ground.content("l") == "overwritten");
  // Of a lower archive; what replaces one name leaves the other as it was.
  CHECK(ground.unpack({{"one", '0', "1"}}) == "ok");
  CHECK(ground.unpack({{"two", '1', "", "one"}, {"one", '0', "changed"}, {"two", '1', "", "two"}}) == "ok");
  CHECK(ground.content("one") + ground.content("two") == "changed1");
}

TEST_CASE("what is in an entry's place is removed, whatever it is") {
  Ground ground;
  CHECK(ground.unpack({{"a/b/c", '0', "1"}, {"f", '0', "2"}, {"x", '0', "first"}, {"x", '0', "second"}}) == "ok");
  CHECK(ground.unpack({{"a", '0', "file"}, {"f", '5'}, {"f/g", '0', "3"}, {"x", '2', "", "f"}}) == "ok");
  CHECK(ground.names() == "a f/ f/g x");
  CHECK(ground.content("f/g") == "3");
  CHECK(ground.unpack({{"a/b", '0', "1"}}) == refused("a/b", "lies below a file"));
  CHECK(ground.unpack({{"x", '5'}, {"x/y", '0', "4"}}) == "ok");
  CHECK(ground.names() == "a f/ f/g x/ x/y");
}

TEST_CASE("whiteouts hide what lower layers have, wherever they stand in their own") {
  Ground ground;
  const std::vector<TarEntry> lower = {{"f", '0', "1"},     {"d/a", '0', "1"},   {"d/b", '0', "1"}, {"e/a", '0', "1"},
                                       {"e/s/t", '0', "1"}, {"e/k/l", '0', "1"}, {"g", '0', "1"}};
  CHECK(ground.layer(lower) == "ok");
  CHECK(ground.layer({{".wh.f"},
                      {"g", '0', "own"},
                      {".wh.g"},
                      {".wh.d"},
                      {"d/new", '0', "2"},
                      {"e/own", '0', "2"},
                      {"e/k/own", '0', "2"},
                      {"e/.wh..wh..opq"},
                      {".wh.never"},
                      {"no/such/.wh.never"},
                      {".wh..wh.plnk/1", '0', "x"}}) == "ok");
  CHECK(ground.names() == "d/ d/new e/ e/k/ e/k/own e/own g");
  CHECK(ground.content("g") == "own");
  CHECK(ground.layer({{".wh."}}) == refused(".wh.", "hides nothing that has a name"));
  CHECK(ground.layer({{".wh..."}}) == refused(".wh...", "hides nothing that has a name"));
  // Not outside, by any link.
  CHECK(ground.layer({{"v", '2', "", ground.folder.path("victim")}, {"v/.wh.secret"}, {"v/.wh..wh..opq"}}) == "ok");
  // An archive that is no layer has files of such names.
  CHECK(ground.unpack({{".wh.g", '0', "plain"}}) == "ok");
  CHECK(ground.content(".wh.g") == "plain");
  CHECK(ground.content("g") == "own");
}

TEST_CASE("a directory that was there keeps its content and gets new attributes") {
  Ground ground;
  CHECK(ground.layer({{"d/x", '0', "1"}}) == "ok");
  CHECK(ground.layer({{"d", '5', "", "", 01777}, {"d/y", '0', "2"}}) == "ok");
  CHECK(ground.names() == "d/ d/x d/y");
  const auto facts = *sys::fstatat(ground.top.get(), "d", 0);
  CHECK((facts.st_mode & 07777) == 01777);
  CHECK(facts.st_mtime == 1'000'000'000);
}

TEST_CASE("devices, sockets and FIFOs are left out and told, and hide what was below") {
  Ground ground;
  CHECK(ground.unpack({{"a", '0', "1"}, {"b", '3'}, {"c", '4'}, {"a", '6'}}) == "ok");
  CHECK(ground.names() == "");
  CHECK(ground.left_out.special == std::vector<std::string>{"/b", "/c", "/a"});
  CHECK(ground.left_out.special_count == 3);
}

TEST_CASE("of extended attributes only plain ones come in; set-user-ID bits do") {
  Ground ground;
  const std::string capability("\1\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
  CHECK(ground.unpack({{"f",
                        '0',
                        "1",
                        "",
                        04755,
                        {{"SCHILY.xattr.security.capability", capability},
                         {"SCHILY.xattr.trusted.overlay.opaque", "y"},
                         {"SCHILY.xattr.user.overlay.opaque", "y"},
                         {"SCHILY.xattr.user.note", "n"}}}}) == "ok");
  char names[256];
  const ssize_t size = ::listxattr(ground.folder.path("top/f").c_str(), names, sizeof names);
  // A file system without them leaves out all.
  CHECK(std::string(names, static_cast<std::size_t>(std::max<ssize_t>(size, 0))).find("overlay") == std::string::npos);
  CHECK(::getxattr(ground.folder.path("top/f").c_str(), "security.capability", names, sizeof names) == -1);
  CHECK(::getxattr(ground.folder.path("top/f").c_str(), "trusted.overlay.opaque", names, sizeof names) == -1);
  CHECK(ground.left_out.attributes.contains("trusted.overlay.opaque"));
  CHECK(ground.left_out.attributes.contains("user.overlay.opaque"));
  CHECK(ground.left_out.with_capabilities == std::vector<std::string>{"/f"});
  CHECK((sys::fstatat(ground.top.get(), "f", 0)->st_mode & 07777) == 04755);
}

TEST_CASE("names, depth, bytes and entries have bounds") {
  Ground ground;
  const auto long_name = [&](const std::string& name) {
    return ground.unpack({{"x", '0', "1", "", 0644, {{"path", name}}}});
  };
  CHECK(long_name(std::string(256, 'n')) == refused(std::string(64, 'n') + "…", "has a part of more than 255 bytes"));
  CHECK(long_name(std::string(255, 'n')) == "ok");
  std::string deep;
  for (int i = 0; i < 256; ++i) deep += "d/";
  CHECK(long_name(deep + "f") == refused((deep + "f").substr(0, 64) + "…", "lies deeper than 256 directories"));
  CHECK(long_name(std::string(4096, '/') + "f").find("has a name of more than 4095 bytes") != std::string::npos);
  ground.bounds = {3000, 3};
  CHECK(ground.unpack({{"big", '0', std::string(2000, 'x')}, {"bigger", '0', std::string(1001, 'x')}})
            .find("larger than benchsand unpacks") != std::string::npos);
  ground.bounds = {20000, 3};
  CHECK(ground.unpack({{"a", '5'}, {"b", '5'}, {"c", '5'}}) == "ok");
  CHECK(ground.unpack({{"a", '5'}, {"b", '5'}, {"c", '5'}, {"d", '5'}}) == "unpack T: more than 3 entries");
}

TEST_CASE("a sparse file may not be larger than its bytes would be") {
  Ground ground;
  ground.bounds.bytes = 1 << 20;
  const std::vector<TarEntry> sparse = {{"s",
                                         '0',
                                         "1\n0\n0\n" + std::string(506, '\0'),
                                         "",
                                         0644,
                                         {{"GNU.sparse.major", "1"},
                                          {"GNU.sparse.minor", "0"},
                                          {"GNU.sparse.name", "s"},
                                          {"GNU.sparse.realsize", "1125899906842624"}}}};
  CHECK(ground.unpack(sparse) == "unpack T: its files have more than 1048576 bytes");
}

TEST_CASE("links to ever deeper places make no tree that nothing can walk") {
  Ground ground;
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "d/";
  std::string said;
  std::string start;
  for (int i = 0; i < 12 && (said.empty() || said == "ok"); ++i) {
    const std::string link = "l" + std::to_string(i);
    // Each link leads to the deepest place so far.
    said = ground.unpack({{start + deep + "f", '0', "1"}});
    if (said == "ok") said = ground.unpack({{link, '2', "", "/" + start + deep.substr(0, deep.size() - 1)}});
    start = link + "/";
  }
  CHECK(said.find("leads deeper than 256 directories") != std::string::npos);
}

TEST_CASE("names that are not ASCII are what the archive has") {
  Ground ground;
  CHECK(ground.unpack({{"x", '0', "1", "", 0644, {{"path", "Főtanúsítvány"}}},
                       {"y", '0', "2", "", 0644, {{"hdrcharset", "BINARY"}, {"path", "b\xff"}}},
                       {"raw\xfe", '0', "3"}}) == "ok");
  CHECK(ground.content("Főtanúsítvány") == "1");
  CHECK(ground.content("b\xff") == "2");
  CHECK(ground.content("raw\xfe") == "3");
}

TEST_CASE("what is no tar archive, or a cut off one, is an error") {
  Ground ground;
  CHECK(ground.unpack("") == "read T: Unrecognized archive format");
  CHECK(ground.unpack("no archive") != "ok");
  const std::string whole = tar_of({{"a", '0', std::string(2000, 'a')}});
  CHECK(ground.unpack(whole.substr(0, 1500)) != "ok");
  CHECK(ground.unpack(std::string("\x1f\x8b\x08\0\0\0\0\0", 8)) != "ok");
}
