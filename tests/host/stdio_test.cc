// Output on its way to an engine: nothing is lost, changed or waited for, whatever the reader does.
#include "shim/stdio.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "support.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

constexpr std::uint64_t kNoCap = std::uint64_t{1} << 40;
constexpr std::uint64_t kShort = 20'000;  // us; of tests in which nobody will ever read

// What the supervisor does with it, until nobody writes any more.
void watch(OutputStream& stream) {
  for (bool open = true; open;) {
    pollfd wait = stream.awaits();
    REQUIRE(::poll(&wait, 1, 60'000) == 1);
    const auto drained = stream.drain();
    REQUIRE(drained);
    open = *drained;
  }
  REQUIRE(stream.drain_all());
}

std::string block(std::size_t number) {
  std::string text(65'537, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>((i * 7 + number * 13) & 0xff);
  return text;
}

void write_and_close(Fd writer, std::string_view text) {
  REQUIRE(sys::write_all(writer, text, "test"));
}

OutputStream passing_on(Fd sink, std::uint64_t cap = kNoCap) {
  std::signal(SIGPIPE, SIG_IGN);
  auto stream = OutputStream::pass_on(std::move(sink), "stdout", cap, kShort);
  if (!stream) FAIL(stream.error().message);
  return std::move(*stream);
}

Fd duplicate(const Fd& fd) {
  return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

// Writes until the kernel takes no more.
std::size_t fill(const Fd& fd) {
  const std::string text(4096, 'f');
  std::size_t written = 0;
  for (ssize_t n = 0; (n = ::write(fd.get(), text.data(), text.size())) > 0;) written += static_cast<std::size_t>(n);
  return written;
}

std::string read_all(const Fd& fd) {
  std::string text, buffer(65'536, '\0');
  for (ssize_t n = 0; (n = ::read(fd.get(), buffer.data(), buffer.size())) > 0;)
    text.append(buffer, 0, static_cast<std::size_t>(n));
  return text;
}

void send_blocks(Fd writer, std::size_t blocks) {
  for (std::size_t i = 0; i < blocks; ++i) static_cast<void>(sys::write_all(writer, block(i), "test"));
}

void check_flood(Fd ours, Fd theirs) {
  constexpr std::size_t kBlocks = 1600;  // 100 MiB
  auto stream = passing_on(std::move(ours));
  Sha256 expected;
  for (std::size_t i = 0; i < kBlocks; ++i) expected.update(block(i));
  std::uint64_t received = 0;
  std::string received_digest;
  std::thread writer([&, end = stream.take_writer()]() mutable { send_blocks(std::move(end), kBlocks); });
  std::thread reader([&] {
    Sha256 digest;
    std::string buffer(9'999, '\0');  // in other pieces than it was written in
    for (ssize_t n = 0; (n = ::read(theirs.get(), buffer.data(), buffer.size())) > 0;) {
      digest.update(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)));
      received += static_cast<std::uint64_t>(n);
    }
    received_digest = digest.hex();
  });
  watch(stream);
  const bool whole = !stream.cut_short();
  stream.close_sink();
  writer.join();
  reader.join();
  const std::string digest = expected.hex();
  const auto facts = stream.facts();
  CHECK(whole);
  CHECK(facts.bytes == kBlocks * 65'537);
  CHECK(facts.kept == facts.bytes);
  CHECK(received == facts.bytes);
  CHECK(facts.sha256 == digest);
  CHECK(received_digest == digest);
}

}  // namespace

TEST_CASE("a flood goes through to a pipe whose reader is slower, whole") {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  check_flood(std::move(pipe->write), std::move(pipe->read));
}

TEST_CASE("a flood goes through to a socket, whole") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  check_flood(Fd(ends[0]), Fd(ends[1]));
}

TEST_CASE("what is written into a full sink is not read any more, and the flags that others share stay") {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  const Fd shared = duplicate(pipe->write);
  auto stream = passing_on(std::move(pipe->write));
  CHECK((::fcntl(shared.get(), F_GETFL) & O_NONBLOCK) == 0);
  Fd writer = stream.take_writer();
  REQUIRE(sys::set_nonblocking(writer));
  // Each round fills the candidate's pipe; in the end both pipes and the buffer between them are full.
  std::size_t written = 0;
  for (std::size_t more = 1; more != 0;) {
    more = fill(writer);
    written += more;
    REQUIRE(stream.drain());
  }
  CHECK(stream.awaits().events == POLLOUT);
  CHECK(stream.bytes() < written);  // some still lies in the candidate's own pipe
  pollfd wait = stream.awaits();
  CHECK(::poll(&wait, 1, 0) == 0);
  // One read of theirs makes room, and it goes on.
  std::string taken(65'536, '\0');
  CHECK(::read(pipe->read.get(), taken.data(), taken.size()) == 65'536);
  wait = stream.awaits();
  CHECK(::poll(&wait, 1, 60'000) == 1);
  const std::uint64_t before = stream.bytes();
  REQUIRE(stream.drain());
  CHECK(stream.bytes() > before);
}

TEST_CASE("a sink that nobody reads is given up at the end, and the rest is counted") {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  auto stream = passing_on(duplicate(pipe->write));
  std::thread writer([end = stream.take_writer()]() mutable { send_blocks(std::move(end), 3); });
  for (bool all = false; !all; all = stream.bytes() == 3 * 65'537) REQUIRE(stream.drain_all());
  writer.join();
  const auto facts = stream.facts();
  CHECK(facts.bytes == 3 * 65'537);
  CHECK(facts.kept == 65'536);  // what a pipe holds
  CHECK(facts.sha256 == sha256_hex(block(0).substr(0, 65'536)));
  REQUIRE(stream.cut_short());
  CHECK(*stream.cut_short() == "stdout: 65536 of 196611 bytes were passed on: nobody took it within 0 s after the end");
  stream.say("not said\n");
}

TEST_CASE("when the reader goes, the rest is counted and dropped") {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  auto stream = passing_on(std::move(pipe->write));
  pipe->read.reset();
  std::thread writer([end = stream.take_writer()]() mutable { send_blocks(std::move(end), 20); });
  watch(stream);
  writer.join();
  const auto facts = stream.facts();
  CHECK(facts.bytes == 20 * 65'537);
  CHECK(facts.kept == 0);
  CHECK(facts.sha256 == sha256_hex(""));
  CHECK(stream.cut_short() == "stdout: 0 of 1310740 bytes were passed on: write stdout: Broken pipe");
}

TEST_CASE("a FIFO that was left by its reader is a reader that went away") {
  const TempFolder folder;
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  auto both = sys::openat(sys::kHere, folder.path("fifo"), O_RDWR);
  REQUIRE(both);
  SUBCASE("read") {
    const Fd reader(::open(folder.path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    auto stream = passing_on(std::move(*both));
    write_and_close(stream.take_writer(), "hello");
    watch(stream);
    CHECK_FALSE(stream.cut_short());
    CHECK(read_all(reader) == "hello");
    stream.close_sink();
    char end = 0;
    CHECK(::read(reader.get(), &end, 1) == 0);  // nobody else holds it open
  }
  SUBCASE("left") {
    const Fd writer(::open(folder.path("fifo").c_str(), O_WRONLY | O_CLOEXEC));
    both->reset();
    auto stream = passing_on(duplicate(writer));
    write_and_close(stream.take_writer(), "hello");
    watch(stream);
    CHECK(stream.cut_short() == "stdout: 0 of 5 bytes were passed on: write stdout: Broken pipe");
  }
}

TEST_CASE("beyond the cap output is counted and dropped, and the digest is of what was passed on") {
  auto pipe = sys::pipe();
  REQUIRE(pipe);
  auto stream = passing_on(std::move(pipe->write), 10);
  write_and_close(stream.take_writer(), "0123456789abc");
  watch(stream);
  CHECK(stream.cut_short() == "stdout: 10 of 13 bytes were passed on: the limit is 10");
  stream.say("benchsand: cut\n");
  stream.close_sink();
  CHECK(read_all(pipe->read) == "0123456789benchsand: cut\n");
  const auto facts = stream.facts();
  CHECK(facts.bytes == 13);
  CHECK(facts.kept == 10);
  CHECK(facts.sha256 == sha256_hex("0123456789"));
  CHECK(stream.beginning() == "0123456789abc");
}

TEST_CASE("a file is written where whoever gave it stands in it") {
  const TempFolder folder;
  auto file = sys::openat(sys::kHere, folder.write("log", "before\n"), O_WRONLY | O_APPEND);
  REQUIRE(file);
  const Fd shared = duplicate(*file);
  auto stream = passing_on(std::move(*file));
  write_and_close(stream.take_writer(), "output\n");
  watch(stream);
  REQUIRE(sys::write_all(shared, "after\n", "test"));
  CHECK(*sys::read_file(sys::kHere, folder.path("log")) == "before\noutput\nafter\n");
  CHECK((::fcntl(shared.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("a terminal is written to; a master side and a directory are no place for output") {
  Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(master);
  REQUIRE(::grantpt(master.get()) == 0);
  REQUIRE(::unlockpt(master.get()) == 0);
  auto slave = sys::openat(sys::kHere, ::ptsname(master.get()), O_RDWR);
  REQUIRE(slave);
  auto stream = passing_on(std::move(*slave));
  write_and_close(stream.take_writer(), "hello\n");
  watch(stream);
  CHECK_FALSE(stream.cut_short());
  std::string text(100, '\0');
  CHECK(::read(master.get(), text.data(), text.size()) == 7);
  CHECK(text.starts_with("hello\r\n"));
  const auto refused = OutputStream::pass_on(std::move(master), "stdout", kNoCap);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "pass stdout on: it is the master side of a terminal; give a pipe or a file");
  auto directory = sys::open_directory(sys::kHere, "/tmp");
  REQUIRE(directory);
  const auto no_stream = OutputStream::pass_on(std::move(*directory), "stderr", kNoCap);
  REQUIRE_FALSE(no_stream);
  CHECK(no_stream.error().message == "pass stderr on: it is no pipe, FIFO, socket, file or terminal");
}

TEST_CASE("a sink on a full disk is given up") {
  auto stream = passing_on(Fd(::open("/dev/full", O_WRONLY | O_CLOEXEC)));
  write_and_close(stream.take_writer(), "hello");
  watch(stream);
  CHECK(stream.cut_short() == "stdout: 0 of 5 bytes were passed on: write stdout: No space left on device");
}
