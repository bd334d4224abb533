// What a helper process is left with, and how it reports.
#include "shim/helper_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "support.h"

using namespace benchsand;

TEST_CASE("a helper process keeps what it needs and nothing else, and no signal is held back") {
  const auto signals = sys::signalfd({SIGINT, SIGTERM});
  REQUIRE(signals);
  const auto given = sys::open_directory(sys::kHere, "/proc");
  REQUIRE(given);
  for (const int descriptor : {given->get(), -1}) {
    const auto helper = HelperProcess::start(
        "look at", "/proc",
        [&](int own) { return descriptor < 0 || ::faccessat(own, "self", F_OK, 0) == 0 ? 0 : errno; }, descriptor);
    if (!helper) FAIL(helper.error().message);
    const std::string proc = "/proc/" + std::to_string(helper->pid());
    const auto held = sys::list_directory(sys::kHere, proc + "/fd");
    REQUIRE(held);
    CHECK(held->size() == (descriptor < 0 ? 2 : 3));
    const auto status = sys::read_file(sys::kHere, proc + "/status");
    REQUIRE(status);
    CHECK(status->find("\nSigBlk:\t0000000000000000\n") != std::string::npos);
  }
  sigset_t none;
  ::sigemptyset(&none);
  CHECK(::sigprocmask(SIG_SETMASK, &none, nullptr) == 0);
}

TEST_CASE("a helper process can do something while it stays, and ends with its owner") {
  auto ends = sys::pipe();
  REQUIRE(ends);
  {
    const auto helper = HelperProcess::start(
        "stay", "here", [](int) { return 0; }, ends->write.get(),
        [](int lifeline) {
          const char given = static_cast<char>('0' + lifeline);
          static_cast<void>(::write(2, &given, 1));
        });
    if (!helper) FAIL(helper.error().message);
    ends->write.reset();
    char bytes[2] = {};
    CHECK(::read(ends->read.get(), bytes, sizeof bytes) == 1);
    CHECK(bytes[0] == '0');
    CHECK(::kill(helper->pid(), 0) == 0);
  }
  char nothing = 0;
  CHECK(::read(ends->read.get(), &nothing, 1) == 0);
  const auto failed = HelperProcess::start(
      "try", "it", [](int) { return EPERM; }, -1, [](int) { ::pause(); });
  REQUIRE_FALSE(failed);
}

TEST_CASE("what fails in a helper process is an error here") {
  const auto failed = HelperProcess::start("try", "it", [](int) { return EPERM; });
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message == "try it: Operation not permitted");
  CHECK(failed.error().error_number == EPERM);
  const auto gone = HelperProcess::start("try", "it", [](int) { return ::kill(::getpid(), SIGKILL); });
  REQUIRE_FALSE(gone);
  CHECK(gone.error().message == "try it: the process that tried it is gone");
}
