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

Result<OutputStream> OutputStream::create(Fd file, std::string name, std::uint64_t cap) {
  OutputStream stream;
  stream.pipe_ = TRY(sys::pipe());
  TRY_VOID(sys::set_nonblocking(stream.pipe_.read));
  stream.file_ = std::move(file);
  stream.name_ = std::move(name);
  stream.cap_ = cap;
  return stream;
}

Result<std::string> OutputStream::identity() const {
  return identity_of_fd(pipe_.read);
}

Result<void> OutputStream::keep(std::string_view bytes) {
  bytes_ += bytes.size();
  if (beginning_.size() < kBeginning) beginning_ += bytes.substr(0, kBeginning - beginning_.size());
  const std::string_view kept = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), cap_ - kept_));
  if (kept.empty()) return {};
  kept_ += kept.size();
  digest_->update(kept);
  return sys::write_all(file_, kept, name_);
}

Result<bool> OutputStream::drain() {
  std::array<char, 65536> buffer;
  for (int i = 0; i < kBuffersPerDrain; ++i) {
    const ssize_t n = ::read(pipe_.read.get(), buffer.data(), buffer.size());
    if (n == 0) return false;
    if (n < 0 && errno == EAGAIN) return true;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read", name_, errno);
    TRY_VOID(keep({buffer.data(), static_cast<std::size_t>(n)}));
  }
  return true;
}

Result<void> OutputStream::drain_all() {
  // What is in the pipe is at most its size, which the candidate may have set to the system's maximum.
  for (std::uint64_t before = bytes_ + 1; bytes_ != before;) {
    before = bytes_;
    if (!TRY(drain())) return {};
  }
  return {};
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
