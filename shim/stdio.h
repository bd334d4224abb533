// The candidate's stdin, stdout and stderr. Output is drained, kept up to a cap, and counted beyond it. Under an engine it is passed
// on instead of kept: byte for byte, so what the engine has is what the candidate wrote first.
#pragma once

#include <poll.h>

#include <optional>
#include <string>

#include "oci/record.h"
#include "oci/sha256.h"
#include "shim/output_sink.h"
#include "shim/sys.h"

namespace benchsand {

class OutputStream {
 public:
  // Keeps at most `cap` bytes in `file`.
  static Result<OutputStream> create(Fd file, std::string name, std::uint64_t cap);
  // Passes at most `cap` bytes on to `sink`. As long as the sink is full nothing more is read, and the candidate waits as it
  // would without benchsand; when it is closed, the rest is counted and dropped.
  static Result<OutputStream> pass_on(Fd sink, std::string name, std::uint64_t cap,
                                      std::uint64_t patience_us = 10'000'000);
  // The same from a FIFO of which others have the writing end.
  static Result<OutputStream> read_from(Fd reader, Fd file, std::string name, std::uint64_t cap);
  OutputStream(OutputStream&&) = default;
  OutputStream& operator=(OutputStream&&) = default;

  Fd take_writer() { return std::move(pipe_.write); }
  Result<std::string> identity() const;  // "pipe:[123]"
  // What the next drain() waits for: more of the candidate's output, or room in the sink.
  pollfd awaits() const;
  // Reads what is there, at most a few buffers, so that a flood on one stream cannot keep the clocks from being looked at.
  // False once all writers have closed.
  Result<bool> drain();
  // After the last writer of the container is dead. A sink that does not take the rest within its patience is given up.
  Result<void> drain_all();
  // After drain_all(): why not all of it was passed on, for the record and for whoever reads stderr. Nothing for a kept file.
  std::optional<std::string> cut_short() const;
  // A line of benchsand's own to the sink, neither counted nor in the digest.
  void say(std::string_view line);
  void close_sink() { sink_.reset(); }  // a reader sees the end only then
  std::uint64_t bytes() const { return bytes_; }
  const std::string& beginning() const { return beginning_; }  // for messages
  StreamFacts facts();                                         // ends the digest

 private:
  OutputStream() = default;
  static Result<OutputStream> open(std::string name, std::uint64_t cap);
  Result<void> keep(std::string_view bytes);
  bool flush();
  void give_up(std::string why);
  bool room_within(std::uint64_t deadline_us);
  sys::Pipe pipe_;
  Fd file_;
  std::optional<OutputSink> sink_;
  std::string name_, beginning_;
  std::string pending_;  // read, and not yet taken by the sink
  std::string given_up_;
  std::uint64_t cap_ = 0, bytes_ = 0, kept_ = 0, patience_us_ = 0;
  std::unique_ptr<Sha256> digest_ = std::make_unique<Sha256>();
};

// A sealed copy: the host's own file is never handed in, as /proc/self/fd/0 would open it anew, for writing if its mode allows.
Result<Fd> standard_input(const std::string& file);

Result<std::string> identity_of_fd(const Fd& fd);  // its link in /proc/self/fd

}  // namespace benchsand
