// The hands one by one: what they refuse, and that they clean up after themselves.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "shim/collect.h"
#include "shim/host_cgroup.h"
#include "shim/output_fs.h"
#include "shim/result_folder.h"
#include "shim/run_folder.h"
#include "shim/stdio.h"
#include "shim/teardown.h"
#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

std::string error_of(const auto& result) {
  return result ? "no error" : result.error().message;
}

constexpr const char* kNobodysId = "r0123456789abcdef01234567";

}  // namespace

TEST_CASE("only a run id can be looked up below the cgroup prefix") {
  CHECK(is_run_id(kNobodysId));
  for (const char* id :
       {"", ".", "..", "/", "r", "r0123456789abcdef0123456", "r0123456789abcdef012345678", "x0123456789abcdef01234567",
        "r0123456789abcdef0123456G", "../../../process_api/xxxx", "r0123456789abcdef0123456/"})
    CHECK_FALSE(is_run_id(id));
  const auto host = CgroupHost::find();
  REQUIRE(host);
  CHECK(error_of(remove_run_cgroups(*host, "")) == "remove the cgroup of run '': not a run id");
  CHECK(error_of(remove_run_cgroups(*host, "..")) == "remove the cgroup of run '..': not a run id");
  CHECK(error_of(RunCgroup::create(*host, ".")) == "create the cgroup of run '.': not a run id");
  CHECK(remove_run_cgroups(*host, kNobodysId));
}

TEST_CASE("a cgroup is made in every hierarchy, kills what is in it, and goes") {
  const auto host = CgroupHost::find();
  REQUIRE(host);
  // The folder's lock says that the run is alive, should a gc pass by.
  const auto folder = RunFolder::create();
  REQUIRE(folder);
  const std::string id = folder->id();
  const auto cgroup = RunCgroup::create(*host, id);
  REQUIRE(cgroup);
  CHECK(cgroup->leaf_path() == std::string("/benchsand/") + id + "/ct");
  CHECK_FALSE(RunCgroup::create(*host, id));  // never somebody else's
  const std::string outer = std::string("benchsand/") + id;
  const pid_t child = ::fork();
  if (child == 0)
    for (;;) ::pause();
  // In a leaf, as on v2 a cgroup that hands controllers down can hold no process itself.
  REQUIRE(sys::mkdirat(host->unified().root.get(), outer + "/ct", 0755));
  REQUIRE(sys::write_file(host->unified().root.get(), outer + "/ct/cgroup.procs", std::to_string(child)));
  CHECK(error_of(cgroup->wait_empty(sys::monotonic_us() + 50'000)).find("still populated") != std::string::npos);
  REQUIRE(cgroup->kill());
  CHECK(cgroup->wait_empty(sys::monotonic_us() + 5'000'000));
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(remove_run_cgroups(*host, id));
  CHECK(folder->remove());
  for (const auto& hierarchy : host->hierarchies()) CHECK_FALSE(*sys::exists(hierarchy.root.get(), outer));
}

TEST_CASE("outputs: regular files with one name, everything else with its reason") {
  const TempFolder folder;
  const std::string out = folder.path("out"), into = folder.path("into");
  std::filesystem::create_directories(out + "/a/b/c");
  std::filesystem::create_directories(into);
  folder.write("out/plain", "text");
  folder.write("out/a/b/deep", "deep");
  folder.write("out/a/b/c/deeper", "too deep");
  folder.write("out/odd \n\xff'name", "odd");
  folder.write("secret", "secret");
  std::filesystem::create_symlink("../secret", out + "/link");
  std::filesystem::create_symlink("..", out + "/up");
  std::filesystem::create_hard_link(folder.path("secret"), out + "/hard");
  REQUIRE(::mkfifo((out + "/fifo").c_str(), 0600) == 0);
  REQUIRE(::mknod((out + "/device").c_str(), S_IFCHR | 0600, 0x0103) == 0);
  folder.write("out/setuid", "x");
  REQUIRE(::chmod((out + "/setuid").c_str(), 04755) == 0);
  folder.write("out/sparse", "");
  REQUIRE(::truncate((out + "/sparse").c_str(), 1L << 40) == 0);
  const auto from = sys::open_directory(sys::kHere, out), to = sys::open_directory(sys::kHere, into);
  const auto collected = collect_outputs(*from, {100, 1000, 3}, *to);
  REQUIRE(collected);
  std::string taken, refused;
  for (const auto& file : collected->files) taken += file.path + "=" + std::to_string(file.size) + "|";
  for (const auto& file : collected->refused) refused += file.path + ": " + file.reason + "|";
  CHECK(taken == "a/b/deep=4|odd \n\xff'name=3|plain=4|");
  CHECK(refused ==
        "a/b/c/deeper: deeper than 3 levels|device: character device|fifo: FIFO|hard: hard link: the file has 2 "
        "names|link: symbolic "
        "link|setuid: set-user-ID or set-group-ID|sparse: more than 1000 bytes in all|up: symbolic link|");
  CHECK_FALSE(std::filesystem::exists(into + "/link"));
}

TEST_CASE("outputs: caps on files and bytes") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("out"));
  for (const char* name : {"a", "b", "c", "d"}) folder.write(std::string("out/") + name, "12345");
  const auto from = sys::open_directory(sys::kHere, folder.path("out"));
  const auto caps_give = [&](CollectCaps caps) {
    const std::string into = folder.path("into" + std::to_string(caps.files) + "-" + std::to_string(caps.bytes));
    std::filesystem::create_directories(into);
    const auto to = sys::open_directory(sys::kHere, into);
    const auto collected = collect_outputs(*from, caps, *to);
    REQUIRE(collected);
    return std::to_string(collected->files.size()) + " taken, then " +
           (collected->refused.empty() ? "" : collected->refused[0].reason);
  };
  CHECK(caps_give({2, 100, 5}) == "2 taken, then more than 2 files");
  CHECK(caps_give({10, 14, 5}) == "2 taken, then more than 14 bytes in all");
  CHECK(caps_give({4, 20, 5}) == "4 taken, then ");
}

TEST_CASE("a checksum line as sha256sum reads it") {
  CHECK(checksum_line("ab", "plain name") == "ab  plain name\n");
  CHECK(checksum_line("ab", "a\nb") == "\\ab  a\\nb\n");
  CHECK(checksum_line("ab", "a\\b") == "\\ab  a\\\\b\n");
}

TEST_CASE("the output file system holds what it was made for, to the byte, and no name on the host leads to it") {
  Policy policy;
  policy.limits.disk_bytes = 1 << 20;
  policy.limits.files = 16;
  policy.uid = policy.gid = 65534;
  const auto output = OutputFs::create(policy);
  REQUIRE(output);
  Evidence evidence;
  output->observe(evidence, "");
  CHECK(*evidence.find("output.bytes")->value() == Value(std::uint64_t{1 << 20}));
  CHECK(*evidence.find("output.inodes")->value() == Value(std::uint64_t{16}));
  const auto file = sys::openat(output->mount().get(), "full", O_RDWR | O_CREAT, 0600);
  REQUIRE(file);
  CHECK(sys::write_all(*file, std::string(1 << 20, 'x'), "full"));
  CHECK(error_of(sys::write_all(*file, "x", "full")) == "write full: No space left on device");
  output->observe_spent(evidence);
  CHECK(*evidence.find("output.bytes_used")->value() == Value(std::uint64_t{1 << 20}));
}

TEST_CASE("stdin is a sealed copy: nobody can reach the host's file through it") {
  const TempFolder folder;
  const std::string path = folder.write("in", "question");
  const auto input = standard_input(path);
  REQUIRE(input);
  CHECK(*sys::reread(*input, "stdin") == "question");
  CHECK_FALSE(
      sys::write_all(*sys::openat(sys::kHere, "/proc/self/fd/" + std::to_string(input->get()), O_RDWR), "x", "stdin"));
  CHECK(error_of(standard_input("/dev/null")) == "use /dev/null as stdin: not a regular file");
  CHECK(standard_input("/nowhere").error().message == "open /nowhere: No such file or directory");
}

TEST_CASE("a stream keeps up to its cap and counts the rest") {
  const TempFolder folder;
  auto stream =
      OutputStream::create(*sys::openat(sys::kHere, folder.path("kept"), O_RDWR | O_CREAT, 0600), "stdout", 10);
  REQUIRE(stream);
  const Fd writer = stream->take_writer();
  CHECK(sys::write_all(writer, std::string(25'000, 'a'), "pipe"));
  CHECK(*stream->drain());
  CHECK(stream->bytes() == 25'000);
  const auto facts = stream->facts();
  CHECK(facts.kept == 10);
  CHECK(std::filesystem::file_size(folder.path("kept")) == 10);
}

TEST_CASE("gc clears what a dead owner left and nothing of a living one") {
  const auto alive = RunFolder::create();
  REQUIRE(alive);
  const auto host = CgroupHost::find();
  REQUIRE(RunCgroup::create(*host, alive->id()));
  const TempFolder results;
  std::array<int, 2> ids{};
  REQUIRE(::pipe(ids.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto mine = RunFolder::create();
    auto partial = ResultFolder::plan(results.path(), mine->id());
    const bool ok =
        mine->note_results(partial->partial_path()) && partial->make() && RunCgroup::create(*host, mine->id());
    if (ok) static_cast<void>(!::write(ids[1], mine->id().data(), mine->id().size()));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::string dead(25, ' ');
  REQUIRE(::read(ids[0], dead.data(), dead.size()) == 25);
  const auto lines = collect_garbage();
  REQUIRE(lines);
  CHECK(std::any_of(lines->begin(), lines->end(),
                    [&](const std::string& line) { return line.starts_with("cleared run " + dead); }));
  CHECK_FALSE(std::filesystem::exists(std::string(kRunBase) + "/" + dead));
  CHECK(std::filesystem::is_empty(results.path()));
  CHECK(std::filesystem::exists(alive->path()));
  const auto left = host->run_ids();
  CHECK(std::find(left->begin(), left->end(), alive->id()) != left->end());
  CHECK(std::find(left->begin(), left->end(), dead) == left->end());
  CHECK(remove_run_cgroups(*host, alive->id()));
  CHECK(alive->remove());
}
