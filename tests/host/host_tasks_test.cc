// Looks at the tasks of a run while they come and go.
#include "shim/host_tasks.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "own_cgroup.h"
#include "shim/container_processes.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

// Ends with the test.
class Child {
 public:
  Child(unsigned long namespaces, const std::function<void()>& work)
      : pid_(static_cast<pid_t>(::syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr))) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  HostProcess process() const {
    auto process = HostProcess::open(pid_);
    REQUIRE(process);
    return std::move(*process);
  }

 private:
  pid_t pid_;
};

[[noreturn]] void breed() {
  for (;;) {
    if (::fork() == 0) ::_exit(0);
    ::wait(nullptr);
  }
}

}  // namespace

TEST_CASE("a delegate's process that ends while it is looked at was not outside") {
  OwnCgroup cgroup;
  cgroup.open_leaf();
  const Child init(0, [&] {
    if (cgroup.join()) ::pause();
  });
  while (*cgroup.get().processes() == 0) ::sched_yield();
  const Child delegate(CLONE_NEWPID, breed);
  auto processes = container_processes(delegate.process());
  REQUIRE(processes);
  auto watch = TaskWatch::open(init.process(), std::move(*processes), cgroup.get());
  REQUIRE(watch);
  watch->leave_delegates_alone(true);
  for (int i = 0; i < 3000; ++i) watch->look(kEveryTask);
  Evidence evidence;
  watch->observe(evidence);
  CHECK(std::get<std::string>(*evidence.find("processes.outside")->value()) == "none");
}
