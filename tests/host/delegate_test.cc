// A delegate without a keeper, as an engine's container needs it: real crun and runc, `create` and `start`.
#include "shim/delegate.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "oci/kernel_files.h"
#include "shim/container_processes.h"
#include "shim/private_mount.h"
#include "shim/run_folder.h"
#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

std::uint64_t soon() {
  return sys::monotonic_us() + 30'000'000;
}

std::string config(const std::string& cgroup) {
  std::string namespaces;
  for (const char* type : {"pid", "mount", "ipc", "uts", "network"})
    namespaces += std::string(namespaces.empty() ? "" : ", ") + R"({"type": ")" + type + R"("})";
  return R"({"ociVersion": "1.0.2", "root": {"path": ")" + std::string(kMountBase) + R"(", "readonly": true},
    "process": {"cwd": "/", "args": ["/bin/sh", "-c", "exit 5"], "user": {"uid": 0, "gid": 0}, "env": ["PATH=/bin"]},
    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
               {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}],
    "linux": {"cgroupsPath": ")" +
         cgroup + R"(", "namespaces": [)" + namespaces + "]}}";
}

struct Container {
  const Host& host;
  const RunFolder& folder;
  const Fd& root;

  std::vector<std::string> arguments(std::vector<std::string> more) const {
    std::vector<std::string> list = {"--root", delegate_state(host.facts.delegate_name)};
    list.insert(list.end(), more.begin(), more.end());
    list.push_back(folder.id());
    return list;
  }

  // As the monitor does; its exit code.
  int call(std::vector<std::string> more) const {
    DelegateStart start;
    start.arguments = arguments(std::move(more));
    start.standard_input = *sys::openat(sys::kHere, "/dev/null", O_RDWR);
    start.standard_output = *sys::openat(sys::kHere, "/dev/null", O_RDWR);
    start.standard_error = *sys::openat(sys::kHere, folder.path("said"), O_RDWR | O_CREAT, 0600);
    if (start.arguments[2] == "create") start.attachments = {{&root, kMountBase}};  // a mount is attached once
    auto delegate = Delegate::start_without_keeper(host.delegate, std::move(start));
    if (!delegate || delegate->has_keeper() || !delegate->executed()) return 101;
    if (*sys::poll_one(delegate->exit_pipe(), POLLIN, soon()) == 0) return 102;
    const auto first = delegate->wait(soon()), again = delegate->wait(soon());
    if (!first || !*first || !again || *again != *first) return 103;
    if (!delegate->kill() || !delegate->wait_end() || delegate->processes()) return 104;
    return **first;
  }

  int in_a_monitor(const std::vector<std::string>& more) const {
    const pid_t monitor = ::fork();
    if (monitor == 0) ::_exit(call(more));
    int status = 0;
    CHECK(::waitpid(monitor, &status, 0) == monitor);
    if (WEXITSTATUS(status) != 0) MESSAGE(*sys::read_file(folder.dir().get(), "said"));
    return WEXITSTATUS(status);
  }
};

ProcessStatus status_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  const auto text = sys::read_file(sys::kHere, path);
  REQUIRE(text);
  const auto status = parse_process_status(*text, path);
  REQUIRE(status);
  return *status;
}

bool stands_on_host(const std::string& target) {
  return sys::read_file(sys::kHere, "/proc/self/mountinfo")->find(" " + target + " ") != std::string::npos;
}

}  // namespace

TEST_CASE("without a keeper, init becomes the child of the subreaper above benchsand") {
  for (const std::string engine : {"crun", "runc"}) {
    CAPTURE(engine);
    const Host host = host_of(engine);
    auto folder = RunFolder::create();
    REQUIRE(folder);
    REQUIRE(RunCgroup::create(host.cgroup, folder->id()));
    const auto rootfs = sys::open_directory(sys::kHere, cache() + "/tiny-rootfs");
    REQUIRE(rootfs);
    const auto root = private_mount(*rootfs, "the rootfs", RootfsMount::overlay, *folder->empty());
    REQUIRE(root);
    REQUIRE(sys::create_file(folder->dir().get(), "config.json",
                             config(std::string("/") + kCgroupPrefix + "/" + folder->id() + "/" + kCgroupLeaf), 0600));
    REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    const Container container = {host, *folder, root->mount};

    REQUIRE(container.in_a_monitor({"create", "--bundle", folder->path(), "--pid-file", folder->path("pid")}) == 0);
    CHECK_FALSE(stands_on_host(kMountBase));
    const auto text = sys::read_file(sys::kHere, folder->path("pid"));
    REQUIRE(text);
    const pid_t init = static_cast<pid_t>(*parse_counter(*text + "\n", "pid"));
    CHECK(status_of(init).parent == static_cast<std::uint64_t>(::getpid()));

    const auto process = HostProcess::open(init);
    REQUIRE(process);
    const auto processes = container_processes(*process);
    if (!processes) FAIL(processes.error().message);
    CHECK(*processes_gone(*processes) == "processes 1");
    CHECK(container.in_a_monitor({"start"}) == 0);
    CHECK(sys::poll_one(*sys::pidfd_open(init), POLLIN, soon()));
    CHECK(*processes_gone(*processes) == "gone");  // a zombie
    int status = 0;
    CHECK(::waitpid(init, &status, 0) == init);
    CHECK(WEXITSTATUS(status) == 5);
    CHECK(*processes_gone(*processes) == "gone");

    CHECK(::prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
    CHECK(remove_run_cgroups(host.cgroup, folder->id()));
    CHECK(sys::remove_tree(sys::kHere, delegate_state(engine) + "/" + folder->id()));
    CHECK(folder->remove());
  }
}

TEST_CASE("a delegate without a keeper dies with benchsand") {
  const TempFolder folder;
  const std::string script =
      folder.write("delegate", "#!/bin/sh\necho $$ >" + folder.path("pid.new") + "; mv " + folder.path("pid.new") +
                                   " " + folder.path("pid") + "; exec sleep 1000\n");
  REQUIRE(::chmod(script.c_str(), 0755) == 0);
  const pid_t monitor = ::fork();
  if (monitor == 0) {
    DelegateBinary binary;
    binary.facts.name = "slow";
    binary.path = "/bin/sh";
    binary.file = *sys::openat(sys::kHere, "/bin/sh", O_RDONLY);
    DelegateStart start;
    start.arguments = {script};
    start.standard_input = *sys::openat(sys::kHere, "/dev/null", O_RDWR);
    start.standard_output = *sys::openat(sys::kHere, "/dev/null", O_RDWR);
    start.standard_error = *sys::openat(sys::kHere, "/dev/null", O_RDWR);
    auto delegate = Delegate::start_without_keeper(binary, std::move(start));
    while (delegate) ::pause();
    ::_exit(1);
  }
  Result<std::string> pid = fault("not yet");
  for (const std::uint64_t until = soon(); !pid && sys::monotonic_us() < until; ::usleep(1000))
    pid = sys::read_file(sys::kHere, folder.path("pid"));
  REQUIRE(pid);
  const auto delegate = sys::pidfd_open(std::stoi(*pid));
  REQUIRE(delegate);
  ::kill(monitor, SIGKILL);
  CHECK(::waitpid(monitor, nullptr, 0) == monitor);
  CHECK(*sys::poll_one(*delegate, POLLIN, soon()) != 0);
}
