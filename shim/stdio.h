// The candidate's stdin, stdout and stderr. Output is drained always, kept up to a cap, and counted beyond it.
#pragma once

#include <string>

#include "oci/record.h"
#include "oci/sha256.h"
#include "shim/sys.h"

namespace benchsand {

class OutputStream {
 public:
  // Keeps at most `cap` bytes in `file`.
  static Result<OutputStream> create(Fd file, std::string name, std::uint64_t cap);
  OutputStream(OutputStream&&) = default;
  OutputStream& operator=(OutputStream&&) = default;

  const Fd& reader() const { return pipe_.read; }
  Fd take_writer() { return std::move(pipe_.write); }
  Result<std::string> identity() const;  // "pipe:[123]"
  // Reads what is there, at most a few buffers, so that a flood on one stream cannot keep the clocks from being looked at.
  // False once all writers have closed.
  Result<bool> drain();
  Result<void> drain_all();  // after the last writer of the container is dead
  std::uint64_t bytes() const { return bytes_; }
  const std::string& beginning() const { return beginning_; }  // for messages
  StreamFacts facts();                                         // ends the digest

 private:
  OutputStream() = default;
  Result<void> keep(std::string_view bytes);
  sys::Pipe pipe_;
  Fd file_;
  std::string name_, beginning_;
  std::uint64_t cap_ = 0, bytes_ = 0, kept_ = 0;
  std::unique_ptr<Sha256> digest_ = std::make_unique<Sha256>();
};

// A sealed copy: the host's own file is never handed in, as /proc/self/fd/0 would open it anew, for writing if its mode allows.
Result<Fd> standard_input(const std::string& file);

Result<std::string> identity_of_fd(const Fd& fd);  // its link in /proc/self/fd

}  // namespace benchsand
