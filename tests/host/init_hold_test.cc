// Real processes: this one is the engine, init's real parent; a second child is the monitor that holds init.
#include "shim/init_hold.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "oci/kernel_files.h"
#include "shim/ptrace.h"
#include "support.h"

using namespace benchsand;

namespace {

constexpr std::uint64_t kSoonUs = 10'000'000;

std::uint64_t soon() {
  return sys::monotonic_us() + kSoonUs;
}

struct Word {
  char what = 0;
  long value = 0;
};

void say(const Fd& fd, char what, long value = 0) {
  const Word word = {what, value};
  if (::write(fd.get(), &word, sizeof word) != sizeof word) ::_exit(99);
}

Word hear(const Fd& fd) {
  Word word;
  if (!*sys::poll_one(fd, POLLIN, soon()) || ::read(fd.get(), &word, sizeof word) != sizeof word) word.what = '!';
  return word;
}

// What the monitor does until it is told to release. 's' serves only when told to, so that a test can hold it back.
[[noreturn]] void monitor(pid_t init, const Fd& orders, const Fd& answers) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto hold = InitHold::seize(init);
  const auto pidfd = sys::pidfd_open(init);
  if (!hold || !pidfd) ::_exit(98);
  say(answers, 'h');
  bool ended = false, serves = true, at_fault = false;
  for (;;) {
    std::array<pollfd, 3> waits = {{{orders.get(), POLLIN, 0},
                                    {ended ? -1 : pidfd->get(), POLLIN, 0},
                                    {serves && !at_fault ? hold->fd().get() : -1, POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0) ::_exit(97);
    if (waits[2].revents != 0) {
      const auto served = hold->serve();
      if (!served) ::_exit(96);
      if ((at_fault = !*served)) say(answers, 'f', *hold->dying_of());
    }
    if (waits[1].revents != 0) {
      ended = true;
      say(answers, 'z');
    }
    if (waits[0].revents == 0) continue;
    const Word order = hear(orders);
    if (order.what == 'a') {
      const auto held = hold->also(static_cast<pid_t>(order.value));
      say(answers, 'a', held ? *held : -1);
    } else if (order.what == 'n') {
      say(answers, 'n', static_cast<long>(hold->stops()));
    } else if (order.what == 'q' || order.what == 's') {
      serves = order.what == 's';
      say(answers, order.what);
    } else {
      const auto status = hold->release(soon(), order.value == 0);
      say(answers, 'r', status ? *status : -1);
      ::_exit(0);
    }
  }
}

// An init that waits until it is held, and its monitor.
class Held {
 public:
  using Program = std::function<int(const Fd& out)>;
  Held(const Program& program, bool namespace_init) {
    auto gate = sys::pipe(), told = sys::pipe(), orders = sys::pipe(), answers = sys::pipe();
    const long pid = ::syscall(SYS_clone, SIGCHLD | (namespace_init ? CLONE_NEWPID : 0), nullptr, nullptr, nullptr, 0);
    REQUIRE(pid >= 0);
    init = static_cast<pid_t>(pid);
    if (init == 0) {
      gate->write.reset();
      char nothing = 0;
      static_cast<void>(!::read(gate->read.get(), &nothing, 1));
      for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);  // those of the test's own framework
      sigset_t none;
      ::sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::_exit(program(told->write));
    }
    monitor_pid = ::fork();
    REQUIRE(monitor_pid >= 0);
    if (monitor_pid == 0) {
      gate->write.reset();
      monitor(init, orders->read, answers->write);
    }
    orders_ = std::move(orders->write);
    answers_ = std::move(answers->read);
    told_ = std::move(told->read);
    REQUIRE(hear(answers_).what == 'h');
  }
  ~Held() {
    if (!reaped_) ::kill(init, SIGKILL);
    ::kill(monitor_pid, SIGKILL);
    ::waitpid(monitor_pid, nullptr, 0);
    if (!reaped_) ::waitpid(init, nullptr, 0);
  }
  Held(const Held&) = delete;

  long ask(char what, long value = 0) const {
    say(orders_, what, value);
    const Word answer = hear(answers_);
    CHECK(answer.what == what);
    return answer.value;
  }
  void order(char what, long value = 0) const { say(orders_, what, value); }
  Word answer() const { return hear(answers_); }
  Word told() const { return hear(told_); }  // by init
  // The number here of the thread that has just told its own.
  long told_thread() const {
    const std::string folder = "/proc/" + std::to_string(init) + "/task";
    const long own = told().value;
    const auto threads = sys::list_directory(sys::kHere, folder);
    REQUIRE(threads);
    for (const auto& thread : *threads) {
      const auto status = sys::read_file(sys::kHere, folder + "/" + thread + "/status");
      if (status && status->find("\nNSpid:\t" + thread + "\t" + std::to_string(own) + "\n") != std::string::npos)
        return std::stol(thread);
    }
    FAIL("no thread " << own << " of init");
    return 0;
  }
  bool parent_may_reap() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(init), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  }
  int reap(int options = 0) {
    int status = -1;
    if (::waitpid(init, &status, options) == init && options == 0) reaped_ = true;
    return status;
  }
  // Init has ended, its parent may not have it; then it may, with the same status.
  int end() {
    CHECK(answer().what == 'z');
    CHECK_FALSE(parent_may_reap());
    const long released = ask('r');
    const int status = reap();
    CHECK(released == status);
    return status;
  }

  pid_t init = 0, monitor_pid = 0;

 private:
  Fd orders_, answers_, told_;
  bool reaped_ = false;
};

constexpr int kSignals = 2000;
std::atomic<int> caught;
int told_by_handler = -1;

void let_handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

void wait_for(const std::atomic<int>& count, int wanted) {
  while (count < wanted) ::usleep(100);
}

// A number that this process and init share.
class Shared {
 public:
  Shared() : page_(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(page_ != MAP_FAILED);
  }
  ~Shared() { ::munmap(page_, 4096); }
  Shared(const Shared&) = delete;
  std::atomic<int>& go() const { return *static_cast<std::atomic<int>*>(page_); }

 private:
  void* page_;
};

// A thread that says its number, waits for `go`, and then does its work.
std::thread worker(const Fd& out, const std::atomic<int>& go, int turn, std::function<void()> work) {
  return std::thread([&out, &go, turn, work = std::move(work)] {
    say(out, 't', ::gettid());
    wait_for(go, turn);
    work();
  });
}

[[noreturn]] void execute(const char* script) {
  ::execl("/bin/sh", "sh", "-c", script, nullptr);
  ::_exit(95);
}

pid_t run_true(pid_t (*start)()) {
  const pid_t child = start();
  if (child == 0) execute("exit 0");
  return child;
}

// In assembly, for the sanitizers would see it coming and end the process in another way.
int fault_now() {
  asm volatile("xor %%eax, %%eax; movl $1, (%%rax)" ::: "rax", "memory", "cc");
  return 0;
}

}  // namespace

TEST_CASE("the parent cannot reap init before it is released; exit code and signal are intact") {
  for (const bool namespace_init : {false, true}) {
    CAPTURE(namespace_init);
    CHECK(WEXITSTATUS(Held([](const Fd&) { return 42; }, namespace_init).end()) == 42);
    Held killed([](const Fd&) { return ::pause(); }, namespace_init);
    ::kill(killed.init, SIGKILL);
    CHECK(WTERMSIG(killed.end()) == SIGKILL);
    Held raises([](const Fd&) { return ::raise(SIGTERM); }, namespace_init);
    const int status = raises.end();  // as before: nobody sends a namespace's init what it did not ask for
    CHECK((namespace_init ? WIFEXITED(status) : WTERMSIG(status) == SIGTERM));
    Held threads(
        [](const Fd&) {
          for (int i = 0; i < 20; ++i) std::thread([] { ::pause(); }).detach();
          return 7;
        },
        namespace_init);
    CHECK(WEXITSTATUS(threads.end()) == 7);
  }
}

TEST_CASE("a monitor that is killed takes init with it") {
  for (const bool namespace_init : {false, true}) {
    Held held([](const Fd&) { return ::pause(); }, namespace_init);
    ::kill(held.monitor_pid, SIGKILL);
    CHECK(WTERMSIG(held.reap()) == SIGKILL);
  }
}

TEST_CASE("signals reach a held init, and what one costs") {
  Held held(
      [](const Fd& out) {
        told_by_handler = out.get();
        let_handle(SIGUSR1, [](int) {
          const Word word = {'c', 0};
          caught += ::write(told_by_handler, &word, sizeof word) == sizeof word;
        });
        say(out, 'g');
        while (caught <= kSignals) ::pause();
        return 0;
      },
      true);
  CHECK(held.told().what == 'g');
  CHECK(held.ask('n') == 0);
  const std::uint64_t before = sys::monotonic_us();
  for (int i = 0; i < kSignals; ++i) {
    ::kill(held.init, SIGUSR1);
    REQUIRE(held.told().what == 'c');
  }
  MESSAGE("us a signal, with its answer: " << static_cast<double>(sys::monotonic_us() - before) / kSignals);
  CHECK(held.ask('n') == kSignals);
  ::kill(held.init, SIGUSR1);
  CHECK(held.end() == 0);
}

TEST_CASE("stop and continue are seen by the parent; a namespace's own processes cannot stop its init") {
  Held held(
      [](const Fd& out) {
        const pid_t child = ::fork();
        if (child == 0) {
          ::kill(1, SIGSTOP);
          ::kill(1, SIGTSTP);
          ::_exit(0);
        }
        while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
        }
        let_handle(SIGCONT, [](int) { ++caught; });
        say(out, 'g');
        wait_for(caught, 1);
        return 5;
      },
      true);
  CHECK(held.told().what == 'g');
  ::kill(held.init, SIGSTOP);
  CHECK(WSTOPSIG(held.reap(WUNTRACED)) == SIGSTOP);
  ::kill(held.init, SIGCONT);
  CHECK(WIFCONTINUED(held.reap(WCONTINUED)));
  CHECK(WEXITSTATUS(held.end()) == 5);
}

TEST_CASE("children of init by fork, vfork and thread are not held and work") {
  Held held(
      [](const Fd&) {
        int failed = 0;
        for (const auto start : {::vfork, ::fork, ::fork}) {
          int status = 0;
          const pid_t child = run_true(start);
          std::thread([&] { failed += ::waitpid(child, &status, 0) != child; }).join();
          failed += status != 0;
        }
        return failed;
      },
      true);
  CHECK(held.end() == 0);
}

TEST_CASE("an exec by another thread leaves init held") {
  for (const bool killed : {false, true}) {
    const Shared shared;
    Held held(
        [&](const Fd& out) {
          worker(out, shared.go(), 1, [&] { execute(killed ? "sleep 1000" : "exit 9"); }).join();
          return 1;
        },
        true);
    CHECK(held.ask('a', held.told_thread()) == 1);
    shared.go() = 1;
    const std::string program = "/proc/" + std::to_string(held.init) + "/comm";
    for (std::uint64_t until = soon();
         sys::read_file(sys::kHere, program) == "host_tests\n" && sys::monotonic_us() < until;)
      ::usleep(1000);
    if (killed) {
      ::kill(held.monitor_pid, SIGKILL);
      CHECK(WTERMSIG(held.reap()) == SIGKILL);
    } else {
      CHECK(WEXITSTATUS(held.end()) == 9);
    }
  }
}

TEST_CASE("threads that were held and end otherwise do not keep init") {
  const Shared shared;
  Held held(
      [&](const Fd& out) {
        auto fails = worker(out, shared.go(), 1, [] { ::execl("/nowhere", "x", nullptr); });
        auto stays = worker(out, shared.go(), 9, [] {});
        fails.join();
        ::_exit(6);
        return 0;
      },
      true);
  for (int i = 0; i < 2; ++i) CHECK(held.ask('a', held.told_thread()) == 1);
  shared.go() = 1;
  CHECK(WEXITSTATUS(held.end()) == 6);
}

// The exec waits until the monitor reaps a held thread, and the kernel would let the monitor wait for the end of that exec.
TEST_CASE("an exec in progress cannot make the monitor wait") {
  const Shared shared;
  Held held(
      [&](const Fd& out) {
        auto stays = worker(out, shared.go(), 9, [] {});
        auto executes = worker(out, shared.go(), 1, [] { execute("exit 4"); });
        executes.join();
        return 1;
      },
      true);
  const long first = held.told_thread(), second = held.told_thread();
  const long stays = std::min(first, second), executes = std::max(first, second);
  const std::string folder = "/proc/" + std::to_string(held.init) + "/task/";
  const auto state = [&](long thread) {
    const auto text = sys::read_file(sys::kHere, folder + std::to_string(thread) + "/stat");
    const auto stat = text ? parse_process_stat(*text, "stat") : Result<ProcessStat>(std::unexpected(text.error()));
    return stat ? stat->state : '-';
  };
  CHECK(held.ask('a', stays) == 1);
  held.ask('q');
  shared.go() = 1;
  for (const std::uint64_t until = soon(); state(stays) != 'Z' && sys::monotonic_us() < until;) ::usleep(100);
  CHECK(held.ask('a', executes) == 0);
  held.ask('s');
  CHECK(WEXITSTATUS(held.reap()) == 4);  // the hold was lost, as the order in this test is wrong
}

TEST_CASE("a fault of its own ends a namespace's init as if nobody held it, and is told before") {
  Held plain([](const Fd&) { return fault_now(); }, false);
  CHECK(WTERMSIG(plain.end()) == SIGSEGV);
  for (const int signal : {SIGSEGV, SIGFPE, SIGILL, SIGTRAP}) {
    CAPTURE(signal);
    Held held(
        [signal](const Fd&) {
          if (signal == SIGFPE) asm volatile("xorl %%ecx, %%ecx; divl %%ecx" ::: "eax", "ecx", "edx", "cc");
          if (signal == SIGILL) asm volatile("ud2");
          if (signal == SIGTRAP) asm volatile("int3");
          return fault_now();
        },
        true);
    const Word word = held.answer();
    CHECK(word.what == 'f');
    CHECK(word.value == signal);
    CHECK(sys::read_file(sys::kHere, "/proc/" + std::to_string(held.init) + "/maps"));  // it can still be looked at
    CHECK_FALSE(held.parent_may_reap());
    held.order('r');
    CHECK(WTERMSIG(held.reap()) == signal);
  }
}

TEST_CASE("a fault that init handles is its own affair, and one of a thread ends all") {
  Held handles(
      [](const Fd&) {
        let_handle(SIGSEGV, [](int) { ::_exit(3); });
        return fault_now();
      },
      true);
  CHECK(WEXITSTATUS(handles.end()) == 3);
  Held thread(
      [](const Fd&) {
        std::thread(fault_now).join();
        return 0;
      },
      true);
  CHECK(WTERMSIG(thread.end()) == SIGSEGV);
  const Shared shared;
  Held held_thread(
      [&](const Fd& out) {
        worker(out, shared.go(), 1, [] { static_cast<void>(fault_now()); }).join();
        return 0;
      },
      true);
  CHECK(held_thread.ask('a', held_thread.told_thread()) == 1);
  shared.go() = 1;
  CHECK(WTERMSIG(held_thread.end()) == SIGSEGV);
}

TEST_CASE("to ask for the end of a traced task takes no stop") {
  const pid_t task = ::fork();
  if (task == 0)
    for (;;) ::pause();
  REQUIRE(*sys::ptrace_seize(task, sys::kExitKill));
  ::kill(task, SIGUSR1);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(task), &info, WSTOPPED | WNOWAIT | __WALL) == 0);
  CHECK_FALSE(sys::ptrace_take_exit(task)->has_value());
  const auto stop = sys::ptrace_next_stop(task);
  REQUIRE(stop->has_value());
  CHECK((*stop)->signal == SIGUSR1);
  ::kill(task, SIGKILL);
  REQUIRE(::waitid(P_PID, static_cast<id_t>(task), &info, WEXITED | WNOWAIT | __WALL) == 0);
  const auto taken = sys::ptrace_take_exit(task);
  REQUIRE(taken.has_value());
  CHECK(*taken == std::optional<int>(SIGKILL));
  CHECK_FALSE(sys::ptrace_take_exit(task)->has_value());
}

// Init faults and waits; then it is undone by whoever still can. Its parent must not see an init that went on.
TEST_CASE("a fault that another thread or process, a handler or nothing at all would undo ends init all the same") {
  const Shared shared;
  const auto die = [&](const char* what, const Held::Program& program, bool alone, int expected) {
    CAPTURE(what);
    shared.go() = 0;
    Held held(program, true);
    CHECK(held.answer().what == 'f');
    shared.go() = 1;
    ::usleep(50'000);
    held.order('r', alone ? 0 : 1);
    const Word released = held.answer();
    CHECK(released.what == 'r');
    CHECK((released.value & 0x7f) == SIGSEGV);
    CHECK(WTERMSIG(held.reap()) == expected);
  };
  const auto undo = [](int) { ::_exit(0); };
  die(
      "a thread that sets a handler",
      [&](const Fd&) {
        std::thread([&] {
          wait_for(shared.go(), 1);
          let_handle(SIGSEGV, undo);
          ::pause();
        }).detach();
        return fault_now();
      },
      true, SIGKILL);
  die(
      "a process that is left", [](const Fd&) { return fault_now(); }, false, SIGKILL);
  die(
      "a signal frame that cannot be read",
      [](const Fd&) {
        asm volatile("mov $8, %%rsp; mov $15, %%eax; syscall; mov $60, %%eax; xor %%edi, %%edi; syscall" ::: "memory");
        return 0;
      },
      true, SIGSEGV);
  die(
      "a pending signal with a handler",
      [&](const Fd&) {
        let_handle(SIGUSR1, undo);
        if (::fork() == 0) {
          wait_for(shared.go(), 1);
          ::kill(1, SIGUSR1);
          ::_exit(0);
        }
        return fault_now();
      },
      true, SIGSEGV);
}

TEST_CASE("a thread that is held does not keep an init that faults") {
  const Shared shared;
  Held held(
      [&](const Fd& out) {
        auto stays = worker(out, shared.go(), 9, [] {});
        wait_for(shared.go(), 1);
        return fault_now();
      },
      true);
  CHECK(held.ask('a', held.told_thread()) == 1);
  shared.go() = 1;
  CHECK(held.answer().what == 'f');
  const std::uint64_t before = sys::monotonic_us();
  CHECK(held.ask('r') == SIGSEGV);
  CHECK(WTERMSIG(held.reap()) == SIGKILL);
  CHECK(sys::monotonic_us() - before < kSoonUs / 2);
}
