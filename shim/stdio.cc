#include "shim/stdio.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "shim/kernel_fs.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kLargestInput = 256 << 20;
constexpr int kBuffersPerDrain = 16;
constexpr std::size_t kBeginning = 500;

}  // namespace

Result<std::string> identity_of_fd(const Fd& fd) {
  return sys::readlinkat(sys::kHere, "/proc/self/fd/" + std::to_string(fd.get()));
}

Result<OutputStream> OutputStream::open(std::string name, std::uint64_t cap) {
  OutputStream stream;
  stream.pipe_ = TRY(sys::pipe());
  TRY_VOID(sys::set_nonblocking(stream.pipe_.read));
  stream.name_ = std::move(name);
  stream.cap_ = cap;
  return stream;
}

Result<OutputStream> OutputStream::create(Fd file, std::string name, std::uint64_t cap) {
  OutputStream stream = TRY(open(std::move(name), cap));
  stream.file_ = std::move(file);
  return stream;
}

Result<OutputStream> OutputStream::read_from(Fd reader, Fd file, std::string name, std::uint64_t cap) {
  OutputStream stream = TRY(create(std::move(file), std::move(name), cap));
  stream.pipe_ = {std::move(reader), Fd()};
  return stream;
}

Result<OutputStream> OutputStream::pass_on(Fd sink, std::string name, std::uint64_t cap, std::uint64_t patience_us) {
  OutputStream stream = TRY(open(std::move(name), cap));
  stream.sink_ = TRY(OutputSink::take(std::move(sink), stream.name_));
  stream.patience_us_ = patience_us;
  return stream;
}

Result<std::string> OutputStream::identity() const {
  return identity_of_fd(pipe_.read);
}

pollfd OutputStream::awaits() const {
  if (!pending_.empty()) return {sink_->fd().get(), POLLOUT, 0};
  return {pipe_.read.get(), POLLIN, 0};
}

Result<void> OutputStream::keep(std::string_view bytes) {
  bytes_ += bytes.size();
  if (beginning_.size() < kBeginning) beginning_ += bytes.substr(0, kBeginning - beginning_.size());
  const std::string_view kept = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), cap_ - kept_));
  if (kept.empty()) return {};
  if (sink_) pending_ = kept;
  if (!file_) return {};
  kept_ += kept.size();
  digest_->update(kept);
  return sys::write_all(file_, kept, name_);
}

// False while the sink takes no more. What became of the sink is no fault of the run.
bool OutputStream::flush() {
  while (!pending_.empty()) {
    const auto taken = sink_->write(pending_);
    if (!taken) give_up(taken.error().message);
    if (!taken || *taken == 0) return !taken;
    kept_ += *taken;
    digest_->update(std::string_view(pending_).substr(0, *taken));
    pending_.erase(0, *taken);
  }
  return true;
}

void OutputStream::give_up(std::string why) {
  given_up_ = std::move(why);
  pending_.clear();
  sink_.reset();
}

Result<bool> OutputStream::drain() {
  std::array<char, 65536> buffer;
  for (int i = 0; i < kBuffersPerDrain; ++i) {
    if (!flush()) return true;
    const ssize_t n = ::read(pipe_.read.get(), buffer.data(), buffer.size());
    if (n == 0) return false;
    if (n < 0 && errno == EAGAIN) return true;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read", name_, errno);
    TRY_VOID(keep({buffer.data(), static_cast<std::size_t>(n)}));
  }
  flush();
  return true;
}

bool OutputStream::room_within(std::uint64_t deadline_us) {
  if (sys::monotonic_us() < deadline_us) {
    const auto room = sys::poll_one(sink_->fd(), POLLOUT, deadline_us);
    if (room && *room != 0) return true;
  }
  give_up("nobody took it within " + std::to_string(patience_us_ / 1'000'000) + " s after the end");
  return false;
}

Result<void> OutputStream::drain_all() {
  const std::uint64_t deadline = sys::monotonic_us() + patience_us_;
  // What is in the pipe is at most its size, which the candidate may have set to the system's maximum.
  for (;;) {
    const std::uint64_t before = bytes_;
    if (!TRY(drain())) return {};
    if (!pending_.empty())
      room_within(deadline);
    else if (bytes_ == before)
      return {};
  }
}

std::optional<std::string> OutputStream::cut_short() const {
  if (file_ || kept_ == bytes_) return std::nullopt;
  return name_ + ": " + std::to_string(kept_) + " of " + std::to_string(bytes_) +
         " bytes were passed on: " + (given_up_.empty() ? "the limit is " + std::to_string(cap_) : given_up_);
}

void OutputStream::say(std::string_view line) {
  const std::uint64_t deadline = sys::monotonic_us() + patience_us_;
  while (sink_ && !line.empty()) {
    const auto taken = sink_->write(line);
    if (!taken) return give_up(taken.error().message);
    line.remove_prefix(*taken);
    if (*taken == 0) room_within(deadline);
  }
}

StreamFacts OutputStream::facts() {
  return {bytes_, kept_, digest_->hex()};
}

Result<Fd> standard_input(const std::string& file) {
  if (file.empty()) return sys::sealed_memory("stdin", "");
  const Fd source = TRY(sys::openat(sys::kHere, file, O_RDONLY | O_NONBLOCK));
  const auto facts = TRY(sys::fstat(source, file));
  if (!S_ISREG(facts.st_mode)) return usage("use " + file + " as stdin: not a regular file");
  TRY_VOID(require_stored_files(source, "use " + file + " as stdin"));
  if (static_cast<std::uint64_t>(facts.st_size) > kLargestInput)
    return usage("use " + file + " as stdin: larger than 256 MiB, and it is copied into memory for the run");
  return sys::sealed_copy("stdin", source, static_cast<std::uint64_t>(facts.st_size));
}

}  // namespace benchsand
