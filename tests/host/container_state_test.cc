#include "shim/container_state.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oci/kernel_files.h"
#include "shim/run_folder.h"

using namespace benchsand;

namespace {

// A root that no engine and no other test has; what it holds goes with it.
struct Root {
  std::string path = "/run/benchsand-test/" + *sys::random_hex(8);
  Root() { REQUIRE(make_base_folders().has_value()); }
  ~Root() {
    if (const auto states = list_containers(path))
      for (const auto& state : *states) CHECK(remove_container(path, state.id).has_value());
  }
};

ContainerState sample(const std::string& root, const std::string& id) {
  ContainerState state;
  state.root = root;
  state.id = id;
  state.run_id = "r" + *sys::random_hex(12);
  state.bundle = "/b";
  state.rootfs = "/b/rootfs";
  state.delegate = "crun";
  state.profile = "strict";
  state.oci_version = "1.0.2";
  state.created = "2026-01-02T03:04:05Z";
  state.annotations = {{"a", "b"}};
  return state;
}

std::vector<std::string> folders() {
  return *sys::list_directory(sys::kHere, kContainerBase);
}

std::uint64_t start_time(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  return parse_process_stat(*sys::read_file(sys::kHere, path), path)->start_time;
}

}  // namespace

TEST_CASE("a container is claimed, found, changed and removed") {
  const Root root;
  CHECK_FALSE(find_container(root.path, "c")->has_value());
  CHECK(require_container(root.path, "c").error().message.find("does not exist") != std::string::npos);
  CHECK_FALSE(update_container(sample(root.path, "c")).has_value());
  auto state = sample(root.path, "c");
  REQUIRE(claim_container(state).has_value());
  state.pid = 7;
  state.pid_start_time = 1ull << 60;
  REQUIRE(update_container(state).has_value());
  const auto found = require_container(root.path + "/./", "c");  // the same directory
  REQUIRE(found.has_value());
  CHECK(found->run_id == state.run_id);
  CHECK(found->pid == 7);
  CHECK(found->pid_start_time == 1ull << 60);
  CHECK(found->annotations == state.annotations);
  CHECK(claim_container(state).error().message == "make the container: a container with the id c already exists");
  // The same id under another root is another container.
  CHECK_FALSE(find_container(root.path + "/x", "c")->has_value());
  REQUIRE(claim_container(sample(root.path, "d")).has_value());
  CHECK(list_containers(root.path)->size() == 2);
  REQUIRE(remove_container(root.path, "c").has_value());
  REQUIRE(remove_container(root.path, "c").has_value());
  CHECK(list_containers(root.path)->size() == 1);
}

TEST_CASE("what a call left that was killed while it claimed or removed is cleared, and no container with it") {
  const Root root;
  REQUIRE(claim_container(sample(root.path, "kept")).has_value());
  const std::string made = std::string(kContainerBase) + "/." + *sys::random_hex(12);
  const std::string removed = std::string(kContainerBase) + "/." + *sys::random_hex(12);
  REQUIRE(sys::mkdirat(sys::kHere, made, 0700).has_value());
  REQUIRE(sys::mkdirat(sys::kHere, removed, 0700).has_value());
  REQUIRE(sys::create_file(sys::kHere, removed + "/state.json", "{}", 0600).has_value());
  CHECK(*remove_temporary_containers() >= 2);
  CHECK_FALSE(*sys::exists(sys::kHere, made));
  CHECK_FALSE(*sys::exists(sys::kHere, removed));
  CHECK(find_container(root.path, "kept")->has_value());
  CHECK(*remove_temporary_containers() == 0);
}

TEST_CASE("of many that claim one id, one gets it") {
  const Root root;
  constexpr int kMany = 16;
  int won = 0;
  std::vector<pid_t> children;
  for (int i = 0; i < kMany; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(claim_container(sample(root.path, "c")) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    won += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  CHECK(won == 1);
  for (const auto& name : folders()) CHECK_FALSE(name.starts_with("."));
}

TEST_CASE("a state that is not whole is an error, and no container of another name is found by it") {
  const Root root;
  REQUIRE(claim_container(sample(root.path, "c")).has_value());
  std::string folder;
  for (const auto& name : folders()) {
    const auto text = sys::read_file(sys::kHere, std::string(kContainerBase) + "/" + name + "/state.json");
    if (text && text->find(root.path) != std::string::npos) folder = std::string(kContainerBase) + "/" + name;
  }
  REQUIRE_FALSE(folder.empty());
  CHECK((sys::fstatat(sys::kHere, folder, 0)->st_mode & 0777) == 0700);
  CHECK((sys::fstatat(sys::kHere, folder + "/state.json", 0)->st_mode & 0777) == 0600);
  const std::string whole = *sys::read_file(sys::kHere, folder + "/state.json");
  for (const std::string& text : {whole.substr(0, whole.size() / 2), std::string(), std::string("[]"),
                                  std::string("{\"benchsand-container\": 2}")}) {
    REQUIRE(sys::replace_file(folder + "/state.json", text, 0600).has_value());
    CHECK_FALSE(find_container(root.path, "c").has_value());
  }
  std::string other = whole;
  other.replace(other.find("\"id\": \"c\""), 9, "\"id\": \"d\"");
  REQUIRE(sys::replace_file(folder + "/state.json", other, 0600).has_value());
  CHECK(find_container(root.path, "c").error().message.find("speaks of another container") != std::string::npos);
  REQUIRE(sys::replace_file(folder + "/state.json", whole, 0600).has_value());
}

TEST_CASE("a container whose first process has ended, or has a number that is another's now, is stopped") {
  const Root root;
  auto state = sample(root.path, "c");
  CHECK(*container_status(state) == ContainerStatus::stopped);  // none was made
  state.pid = ::getpid();
  state.pid_start_time = start_time(state.pid) + 1;
  CHECK(*container_status(state) == ContainerStatus::stopped);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);  // a zombie
  state.pid = child;
  state.pid_start_time = start_time(child);
  CHECK(*container_status(state) == ContainerStatus::stopped);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(*container_status(state) == ContainerStatus::stopped);
  // Alive, but nothing can be said of its cgroup: an error, and no guess.
  state.pid = ::getpid();
  state.pid_start_time = start_time(state.pid);
  CHECK_FALSE(container_status(state).has_value());
}
