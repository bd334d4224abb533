// Records of containers: found again by every name, one process at a time, whole or not at all.
#include "shim/record_store.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "shim/container_name.h"
#include "shim/runtime_verbs.h"
#include "support.h"

using namespace benchsand;
using namespace benchsand::support;
using nlohmann::json;

namespace {

const std::string kWeb(64, 'a'), kOther = "aaaab" + std::string(59, '0');

std::string error_of(const auto& result) {
  return result ? "no error" : result.error().message;
}

json record_of(const std::string& id, const std::string& name, int number = 0) {
  return {{"created", "2026-11-30T13:44:37Z"}, {"container", {{"id", id}, {"name", name}}}, {"number", number}};
}

struct Store {
  TempFolder folder;
  std::string base = folder.path("lib/records");
  RecordStore store = std::move(*RecordStore::open(base));

  void put(const std::string& id, const std::string& name, int number = 0) {
    const auto stored = store.store(record_of(id, name, number), id);
    REQUIRE(error_of(stored) == "no error");
    CHECK(*stored == base + "/" + id + ".json");
  }
  // The number of the record that is found.
  int number(const std::string& wanted) {
    const auto found = store.look_up(wanted);
    REQUIRE(error_of(found) == "no error");
    return json::parse(*sys::read_file(sys::kHere, found->path)).at("number");
  }
  std::vector<std::string> notes(const std::string& wanted) { return store.look_up(wanted)->notes; }
  std::vector<std::string> names() { return *sys::list_directory(sys::kHere, base); }
  void age(const std::string& stem, time_t days) {
    const timespec then = {::time(nullptr) - days * 86'400, 0};
    const timespec times[] = {then, then};
    REQUIRE(::utimensat(AT_FDCWD, (base + "/" + stem + ".json").c_str(), times, 0) == 0);
  }
};

}  // namespace

TEST_CASE("a record is found by the id of its run, which need not be the container's newest") {
  Store at;
  const std::string first = "r" + std::string(24, '1'), second = "r" + std::string(24, '2');
  for (const auto& run : {first, second}) {
    auto record = record_of(kWeb, "benchsand-" + run, run == first ? 1 : 2);
    record["id"] = run;
    REQUIRE(at.store.store(record, kWeb));
  }
  CHECK(at.number(first) == 1);
  CHECK(at.number(second) == 2);
  CHECK(at.number("benchsand-" + second) == 2);
  CHECK_FALSE(at.store.look_up("r" + std::string(24, '3')));
}

TEST_CASE("a record is found by id, name, and the beginning of an id") {
  Store at;
  at.put(kWeb, "web", 1);
  at.put(kOther, "other", 2);
  struct stat facts {};
  REQUIRE(::stat((at.base + "/" + kWeb + ".json").c_str(), &facts) == 0);
  CHECK((facts.st_mode & 07777) == 0600);
  REQUIRE(::stat(at.base.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 07777) == 0700);
  CHECK(at.number(kWeb) == 1);
  CHECK(at.number("web") == 1);
  CHECK(at.number("other") == 2);
  CHECK(at.number("aaaaa") == 1);
  CHECK(at.number("aaaab") == 2);
  const std::string what = "find the record of container ", in = " in " + at.base + ": ";
  CHECK(error_of(at.store.look_up("aaaa")) ==
        what + "aaaa" + in + "2 ids begin so; give more of it: " + kWeb + ", " + kOther);
  for (const char* wanted : {"aaa", "", "we", "webs", "../records"})
    CHECK(error_of(at.store.look_up(wanted)) ==
          what + wanted + in +
              "no id or name is this, and no id begins so (with four characters at least); `benchsand records` lists "
              "what is kept");
}

TEST_CASE("a container that was started again has several records, the newest under its id") {
  Store at;
  for (int i = 1; i <= 3; ++i) at.put(kWeb, "web", i);
  CHECK(at.names() == std::vector<std::string>{".lock", kWeb + ".json", kWeb + "~1.json", kWeb + "~2.json"});
  CHECK(at.number(kWeb) == 3);
  CHECK(at.number("web") == 3);
  CHECK(at.number(kWeb + "~1") == 1);
  CHECK(at.number(kWeb + "~2") == 2);
  CHECK(at.notes("web") ==
        std::vector<std::string>{"this container has 3 records, and this is the newest; the older ones: " + kWeb +
                                 "~2, " + kWeb + "~1"});
  CHECK(at.notes(kWeb + "~2").empty());
  for (const std::string& known_as : {std::string("web"), std::string("aaaa")}) {
    CHECK(at.number(known_as + "~1") == 1);
    CHECK(at.number(known_as + "~2") == 2);
    CHECK(error_of(at.store.look_up(known_as + "~3")) == "find the record " + known_as + "~3 in " + at.base +
                                                             ": this container has no such record, but " + kWeb + ", " +
                                                             kWeb + "~2, " + kWeb + "~1");
  }
  CHECK(error_of(at.store.look_up("we~1")).starts_with("find the record of container we in "));
  // benchsand died between two renames.
  REQUIRE(sys::unlinkat(sys::kHere, at.base + "/" + kWeb + ".json", 0));
  CHECK(at.number("web") == 2);
  at.put(kWeb, "web", 4);
  CHECK(at.number("web") == 4);
  CHECK(at.names().size() == 4);
}

TEST_CASE("a name that was used again is the newest container's, and the others are named") {
  Store at;
  at.put(kWeb, "web", 1);
  at.age(kWeb, 1);
  at.put(kOther, "web", 2);
  CHECK(at.number("web") == 2);
  CHECK(at.notes("web") ==
        std::vector<std::string>{"2 containers had the name web, and this is the newest; all of them: " + kOther +
                                 ", " + kWeb});
  CHECK(at.number(kWeb) == 1);
  // An id goes before a name, and a name before the beginning of an id.
  at.put("web", "third", 3);
  CHECK(at.number("web") == 3);
  at.put("c1", "aaaab", 4);
  CHECK(at.number("aaaab") == 4);
}

TEST_CASE("records go by number and by age, and the newest never") {
  Store at;
  for (int i = 0; i < 6; ++i) {
    at.put("c" + std::to_string(i), "n", i);
    at.age("c" + std::to_string(i), 100 - i);
  }
  at.put("c5", "n", 7);
  at.age("c5", 94);
  at.age("c5~1", 95);
  CHECK(*at.store.rotate({7, 200}) == 0);
  CHECK(*at.store.rotate({5, 200}) == 2);
  CHECK(at.names() == std::vector<std::string>{".lock", "c2.json", "c3.json", "c4.json", "c5.json", "c5~1.json"});
  CHECK(*at.store.rotate({5, 97}) == 2);
  CHECK(at.names() == std::vector<std::string>{".lock", "c4.json", "c5.json", "c5~1.json"});
  CHECK(*at.store.rotate({5, 1}) == 2);
  CHECK(at.names() == std::vector<std::string>{".lock", "c5.json"});
  CHECK(*at.store.rotate({1, 1}) == 0);
  // What a killed writer left; a clock that was set back makes nothing old.
  REQUIRE(sys::create_file(sys::kHere, at.base + "/.c9.0123456789ab", "half", 0600));
  at.age("c5", -100);
  at.put("c6", "n");
  CHECK(*at.store.rotate({1000, 90}) == 0);
  CHECK(at.names() == std::vector<std::string>{".lock", "c5.json", "c6.json"});
}

TEST_CASE("writers and rotation come one after the other") {
  Store at;
  constexpr int kWriters = 8, kEach = 12;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.push_back(::fork());
    if (writers.back() != 0) continue;
    bool good = true;
    for (int i = 0; i < kEach; ++i) {
      good = good && at.store.store(record_of(kWeb, "web", writer * kEach + i), kWeb);
      good = good && at.store.rotate({1000, 90});
    }
    ::_exit(good ? 0 : 1);
  }
  for (const pid_t writer : writers) {
    int status = 0;
    REQUIRE(::waitpid(writer, &status, 0) == writer);
    CHECK(status == 0);
  }
  CHECK(at.names().size() == kWriters * kEach + 1);
  std::set<int> seen;
  for (const auto& name : at.names())
    if (name != ".lock")
      seen.insert(json::parse(*sys::read_file(sys::kHere, at.base + "/" + name)).at("number").get<int>());
  CHECK(seen.size() == kWriters * kEach);
}

TEST_CASE("only what can be a file's name is an id, and the place is never a symbolic link") {
  Store at;
  for (const char* id : {"", ".", "..", "../x", "a/b", ".lock", "a~1", "a b", "a\n"})
    CHECK(error_of(at.store.store(record_of(id, "x"), id)) ==
          "keep the record of container '" + std::string(id) + "': not an id that can be a file's name");
  CHECK_FALSE(at.store.store(record_of("x", "x"), std::string(201, 'a')));
  REQUIRE(::symlink(at.base.c_str(), at.folder.path("link").c_str()) == 0);
  CHECK_FALSE(RecordStore::open(at.folder.path("link")));
  REQUIRE(::chmod(at.base.c_str(), 0755) == 0);
  CHECK(error_of(RecordStore::open(at.base)) ==
        "use " + at.base + ": it must belong to root with mode 0700; remove it");
  CHECK(error_of(RecordStore::find(at.folder.path("none"))) ==
        "look for records in " + at.folder.path("none") +
            ": there are none yet; a container's first run makes the place");
}

TEST_CASE("a word of `verdict` is a path, a folder, or a container") {
  Store at;
  at.put(kWeb, "web", 1);
  CHECK(find_record("x/y", at.base)->path == "x/y");
  CHECK(find_record("gone.json", at.base)->path == "gone.json");
  CHECK(find_record(at.folder.path(), at.base)->path == at.folder.path("record.json"));
  CHECK(find_record("web", at.base)->path == at.base + "/" + kWeb + ".json");
  CHECK_FALSE(find_record("nobody", at.base));
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(at.folder.path());
  at.folder.write("web", "");
  at.folder.write("plain", "");
  const auto both = find_record("web", at.base);
  const auto plain = find_record("plain", at.base);
  std::filesystem::current_path(before);
  CHECK(both->path == at.base + "/" + kWeb + ".json");
  CHECK(both->notes == std::vector<std::string>{"there is a file of this name here too; for that, give ./web"});
  CHECK(plain->path == "plain");
}

TEST_CASE("a full disk loses the record, says so, and leaves the one before") {
  const TempFolder folder;
  REQUIRE(::mkdir(folder.path("small").c_str(), 0700) == 0);
  const pid_t child = ::fork();  // in a mount namespace of its own
  if (child == 0) {
    const bool mounted = ::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", "", MS_REC | MS_PRIVATE, "") == 0 &&
                         ::mount("none", folder.path("small").c_str(), "tmpfs", 0, "size=64k,mode=0700") == 0;
    if (!mounted) ::_exit(2);
    const auto store = RecordStore::open(folder.path("small/records"));
    if (!store || !store->store(record_of("c1", "web"), "c1")) ::_exit(3);
    const auto full = store->store(record_of("c1", std::string(100'000, 'x')), "c1");
    if (error_of(full) != "keep the record of container c1 in " + folder.path("small/records") +
                              ": write c1.json: No space left on device; nothing was recorded, so it has no score")
      ::_exit(4);
    if (!store->look_up("web") || sys::list_directory(sys::kHere, folder.path("small/records"))->size() != 2)
      ::_exit(5);
    ::_exit(store->store(record_of("c2", "room again"), "c2") ? 0 : 6);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("runtime.yaml is read when root alone can write it") {
  const TempFolder folder;
  const std::string path = folder.path("runtime.yaml");
  CHECK(load_runtime_settings(path)->keep.records == 1000);
  folder.write("runtime.yaml", "records: {keep: 3}\n");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(load_runtime_settings(path)->keep.records == 3);
  const std::string refused =
      "use " + path + ": it must be a file of root's that nobody else may write (chown root, chmod go-w)";
  REQUIRE(::chmod(path.c_str(), 0664) == 0);
  CHECK(error_of(load_runtime_settings(path)) == refused);
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  REQUIRE(::chown(path.c_str(), 65534, 0) == 0);
  CHECK(error_of(load_runtime_settings(path)) == refused);
}

TEST_CASE("Docker's name of a container lies beside its hosts file") {
  const TempFolder folder;
  const std::string place = "containers/" + kWeb;
  REQUIRE(std::filesystem::create_directories(folder.path(place)));
  const auto named = [&](const std::string& source) {
    return container_name({{"mounts", {{{"destination", "/etc/hosts"}, {"source", source}}}}}, kWeb, ::getpid());
  };
  const std::string hosts = folder.path(place + "/hosts");
  CHECK(named(hosts) == kWeb);
  folder.write(place + "/config.v2.json", R"({"Name":"/happy_hopper","ID":"x"})");
  CHECK(named(hosts) == "happy_hopper");
  CHECK(named(folder.path("containers/" + kOther + "/hosts")) == kWeb);
  for (const char* text : {R"({"Name":"happy"})", R"({"Name":"/a/b"})", R"({"Name":"/.."})", R"({"Name":7})", "[]", "{",
                           R"({"Name":"/a\u001b[2J"})", R"({"Name":"/"})"}) {
    folder.write(place + "/config.v2.json", text);
    CHECK(named(hosts) == kWeb);
  }
  for (const char* text : {"{}", "[]", R"({"mounts":{}})", R"({"mounts":[1,{"destination":1}]})"})
    CHECK(container_name(json::parse(text), "c1", ::getpid()) == "c1");
}

TEST_CASE("Podman's name of a container stands in the arguments of conmon") {
  const auto named = [](const std::vector<std::string>& arguments) {
    auto pipe = sys::pipe();
    REQUIRE(pipe);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(pipe->read.get(), 0);
      std::vector<char*> words;
      for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      ::execv("/bin/sh", words.data());
      ::_exit(1);
    }
    // The shell waits for its standard input to end. Its program stands before its arguments do.
    const std::string path = "/proc/" + std::to_string(child) + "/cmdline";
    for (std::string seen; !seen.starts_with(arguments.front() + '\0');) {
      if (const auto text = sys::read_file(sys::kHere, path)) seen = *text;
      ::usleep(1000);
    }
    const std::string name = container_name(json::object(), kWeb, child);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return name;
  };
  const std::string wait = "read line";
  CHECK(named({"/usr/bin/conmon", "-c", wait, "-c", kWeb, "-n", "happy_hopper", "--exit-dir", "/x"}) == "happy_hopper");
  CHECK(named({"/usr/bin/conmon", "-c", wait, "-c", kOther, "-n", "happy_hopper", "--exit-dir", "/x"}) == kWeb);
  CHECK(named({"/usr/bin/conmon", "-c", wait, "-c", kWeb, "-n", "../x", "--exit-dir", "/x"}) == kWeb);
  CHECK(named({"/usr/bin/other", "-c", wait, "-c", kWeb, "-n", "happy_hopper", "--exit-dir", "/x"}) == kWeb);
  CHECK(container_name(json::object(), "c1", 0x3fffffff) == "c1");
}
