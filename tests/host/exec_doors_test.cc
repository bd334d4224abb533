// Processes that a delegate brings into a container that runs: real execs, into real runs.
#include "shim/exec_doors.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "oci/bundle.h"
#include "oci/kernel_files.h"
#include "shim/run_folder.h"
#include "shim/user_namespace.h"
#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

// Only what changes where it is written down: of a process that is gone, nothing.
std::string line_of_status(const std::string& process, const std::string& name) {
  const auto text = sys::read_file(sys::kHere, "/proc/" + process + "/status");
  const std::size_t at = text ? text->find("\n" + name + ":\t") : std::string::npos;
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 3;
  return text->substr(begin, text->find('\n', begin) - begin);
}

std::string init_of(const std::string& run_id) {
  const auto host = CgroupHost::find();
  REQUIRE(host);
  const std::string leaf = std::string(kCgroupPrefix) + "/" + run_id + "/" + kCgroupLeaf + "/cgroup.procs";
  const auto init = parse_counter(*sys::read_file(host->unified().root.get(), leaf), leaf);
  REQUIRE(init);
  return std::to_string(*init);
}

// The first process of its pid namespace. Between it and init stands the delegate, for as long as it takes to end: with this
// parent and no other the delegate's state of the run can be read.
std::string keeper_above(const std::string& init) {
  for (std::string process = init;;) {
    const std::string parent = line_of_status(process, "PPid");
    if (parent.empty() && process == init) FAIL("init is gone");
    if (line_of_status(parent, "NSpid").ends_with("\t1")) return parent;
    process = parent.empty() ? init : parent;
  }
}

// As an engine gives it to the delegate, hardened as the container's own process is.
std::string process_of(const std::string& engine, const Policy& policy, const std::string& script,
                       const std::string& capabilities) {
  nlohmann::json process = {{"cwd", "/"}, {"noNewPrivileges", true}};
  process["args"] = std::vector<std::string>{"/bin/sh", "-c", script};
  process["env"] = std::vector<std::string>{"PATH=/bin"};
  process["user"] = {{"uid", policy.uid}, {"gid", policy.gid}};
  std::vector<std::string> list;
  if (!capabilities.empty()) list.push_back(capabilities);
  for (const char* set : {"bounding", "permitted", "effective"}) process["capabilities"][set] = list;
  // As in the bundle: where runc cannot set them, benchsand does.
  if (engine == "crun" || *may_set_limits_of_others())
    for (const auto& [type, value] : process_limits(policy))
      process["rlimits"].push_back({{"type", type}, {"soft", value}, {"hard", value}});
  return process.dump();
}

struct Exec {
  bool announced = true;
  std::string capabilities = {};
  int idlers = 0;  // that stand at the door before it, and never say anything
};

struct Executed {
  RunReport report;
  int status = -1;
  std::string said;  // by the delegate
};

// In the keeper's namespaces, and reaping what the delegate leaves there, as an engine does: init cannot end before.
int exec_beside(const std::string& keeper, const std::string& command) {
  const std::string namespaces = "/proc/" + keeper + "/ns/";
  const auto pid = sys::openat(sys::kHere, namespaces + "pid", O_RDONLY);
  const auto mounts = sys::openat(sys::kHere, namespaces + "mnt", O_RDONLY);
  if (!pid || !mounts || ::setns(pid->get(), CLONE_NEWPID) != 0 || ::setns(mounts->get(), CLONE_NEWNS) != 0) return 101;
  const pid_t reaper = ::fork();
  if (reaper == 0) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t shell = ::fork();
    if (shell == 0) ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    int status = 0, of_shell = 102;
    for (pid_t ended = 0; (ended = ::wait(&status)) > 0;)
      if (ended == shell) of_shell = WIFEXITED(status) ? WEXITSTATUS(status) : 103;
    ::_exit(of_shell);
  }
  int status = 0;
  return ::waitpid(reaper, &status, 0) == reaper && WIFEXITED(status) ? WEXITSTATUS(status) : 104;
}

// True once all stand in the queue.
bool stand_there(const std::string& listener, std::vector<Fd>& idlers) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  listener.copy(address.sun_path, sizeof address.sun_path - 1);
  for (auto& idler : idlers) {
    idler = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(idler.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
  }
  return true;
}

struct Errand {
  std::string keeper, command, listener;
  Fd output;
  std::vector<Fd> idlers;
};

// The run waits for `over`: it must not end, and its keeper with it, while the exec is being cleared away.
[[noreturn]] void run_errand(Errand errand) {
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int status = stand_there(errand.listener, errand.idlers) ? exec_beside(errand.keeper, errand.command) : 106;
  ::_exit(::mknodat(errand.output.get(), "over", S_IFREG | 0644, 0) == 0 ? status : 105);
}

// Not before the delegate calls it running.
std::string exec_command(const std::string& engine, const std::string& id, const TempFolder& folder) {
  const std::string call = engine + " --root " + delegate_state(engine);
  return "for i in $(seq 200); do " + call + " state " + id +
         " | grep -q '\"running\"' && break; sleep 0.05; done; exec " + call + " exec --process " +
         folder.path("process.json") + " " + id + " >" + folder.path("said") + " 2>&1";
}

// A run that waits for the exec, and the exec by its delegate meanwhile.
Executed run_with_exec(const std::string& engine, const TempFolder& folder, const Exec& exec) {
  const Host host = host_of(engine);
  Policy policy = policy_of(folder, task_text("[/bin/sh, -c, 'until [ -e /output/over ]; do sleep 0.1; done']"));
  // On a slow machine no limit may end it before the exec is there.
  policy.limits.cpu_time_us = policy.limits.wall_time_us = 60'000'000;
  folder.write("process.json", process_of(engine, policy, "touch /output/ran", exec.capabilities));
  std::string id;
  pid_t child = -1;
  RunHooks hooks;
  hooks.hold = true;
  hooks.observed = [&](const std::string& moment, Evidence& evidence) {
    if (moment != "at the door") return;
    const auto path = std::get<std::string>(*evidence.find("evidence.cgroup_path")->value());
    id = path.substr(path.find(std::string(kCgroupPrefix) + "/r") + std::string(kCgroupPrefix).size() + 1, 25);
  };
  hooks.execs = [&](ExecDoors& doors) {
    if (exec.announced) doors.expect();
    const std::string init = init_of(id);
    Errand errand;
    errand.keeper = keeper_above(init);
    errand.command = exec_command(engine, id, folder);
    errand.listener = std::string(kRunBase) + "/" + id + "/listener";
    const auto of_init = sys::open_directory(sys::kHere, "/proc/" + init);
    errand.output = *sys::open_directory(of_init->get(), "root/output");
    errand.idlers.resize(exec.idlers);
    child = ::fork();
    if (child == 0) run_errand(std::move(errand));
  };
  auto report = run_task(host, policy, folder.path("results"), hooks);
  if (!report) FAIL(report.error().message);
  Executed executed{std::move(*report), -1, {}};
  CHECK(::waitpid(child, &executed.status, 0) == child);
  executed.said = sys::read_file(sys::kHere, folder.path("said")).value_or("nothing");
  return executed;
}

std::string seen(const Executed& executed, const char* section, const char* wall, const char* key) {
  const nlohmann::json::json_pointer place("/evidence/" + std::string(section) + "/" + wall + "/" + key + "/observed");
  if (!executed.report.record.contains(place)) return "no " + place.to_string() + ": " + executed.report.end.fault;
  const auto& value = executed.report.record[place];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string failures_of(const Executed& executed) {
  std::string text;
  for (const auto& f : executed.report.verdict.failures) text += f.wall + ": " + f.source + ": " + f.observed + "\n";
  return text;
}

}  // namespace

TEST_CASE("an exec that is as init was comes in, and the run is scored") {
  for (const std::string engine : {"crun", "runc"}) {
    CAPTURE(engine);
    const TempFolder folder;
    const auto executed = run_with_exec(engine, folder, {});
    CAPTURE(executed.said);
    CAPTURE(failures_of(executed));
    CHECK(executed.report.verdict.scored);
    CHECK(executed.status == 0);
    CHECK(seen(executed, "spent", "evidence", "execs") == "1");
    CHECK(std::filesystem::exists(executed.report.results + "/output/ran"));
  }
}

TEST_CASE("an exec that is more than init was never begins, and ends the run") {
  for (const std::string engine : {"crun", "runc"}) {
    CAPTURE(engine);
    const TempFolder folder;
    const auto executed = run_with_exec(engine, folder, {.capabilities = "CAP_CHOWN"});
    CAPTURE(executed.said);
    CAPTURE(failures_of(executed));
    CHECK(executed.report.verdict.outcome == Outcome::refused);
    CHECK(executed.report.end.cause == Cause::killed);
    // At its door; or by the look that is due every 100 ms, when that comes first.
    CHECK((seen(executed, "established", "privileges", "exec") + seen(executed, "established", "privileges", "tasks"))
              .find("capabilities") != std::string::npos);
    CHECK(seen(executed, "spent", "evidence", "execs") == "0");
    CHECK_FALSE(std::filesystem::exists(executed.report.results + "/output/ran"));
  }
}

TEST_CASE("an exec that nobody announced never begins, and ends the run") {
  for (const std::string engine : {"crun", "runc"}) {
    CAPTURE(engine);
    const TempFolder folder;
    const auto executed = run_with_exec(engine, folder, {.announced = false});
    CAPTURE(executed.said);
    CAPTURE(failures_of(executed));
    CHECK(executed.report.verdict.outcome == Outcome::refused);
    CHECK(executed.report.end.cause == Cause::killed);
    CHECK_FALSE(std::filesystem::exists(executed.report.results + "/output/ran"));
  }
}

TEST_CASE("an exec for which the door has no room fails, and costs the run nothing") {
  for (const std::string engine : {"crun", "runc"}) {
    CAPTURE(engine);
    const TempFolder folder;
    const auto executed = run_with_exec(engine, folder, {.idlers = 16});
    CAPTURE(executed.said);
    CAPTURE(failures_of(executed));
    CHECK(executed.report.verdict.outcome == Outcome::succeeded);
    CHECK(executed.status != 0);
    CHECK(executed.said.find("temporarily unavailable") != std::string::npos);
    CHECK(seen(executed, "spent", "evidence", "execs") == "0");
    CHECK_FALSE(std::filesystem::exists(executed.report.results + "/output/ran"));
  }
}
