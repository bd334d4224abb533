// The host's side of the gate (gate.c): the file system that it is in, and the FIFOs by which it and benchsand speak.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "oci/policy.h"
#include "shim/host_process.h"
#include "shim/sys.h"

namespace benchsand {

extern const std::span<const unsigned char> kGateProgram;  // the build makes it of gate.c

class Gate {
 public:
  static Result<Gate> create(const Policy& policy);

  const Fd& mount() const { return mount_; }               // read-only
  const std::string& program() const { return program_; }  // its identity
  const StandardStreams& streams() const { return streams_; }
  Fd take_stdout() { return std::move(stdout_); }
  Fd take_stderr() { return std::move(stderr_); }

  // Readable once the gate has said something, or is gone.
  const Fd& report() const { return report_; }
  // It stands at the door, with the three streams and nothing else open. An error when it has ended before.
  Result<void> is_ready() const;
  // Nothing but an empty read-only directory is left of it in the container. While the mount is attached.
  Result<void> hide() const;
  Result<void> open_door() const;
  // errno, when the candidate could not be executed.
  Result<std::optional<int>> why_not_executed() const;

 private:
  Gate() = default;
  Result<void> make_files();
  Result<Fd> make_fifo(const std::string& name, int flags);

  Fd mount_, stdout_, stderr_, report_, door_;
  std::string program_;
  StandardStreams streams_;
};

}  // namespace benchsand
