// A child that makes a few system calls, reports how they went, and then waits. It ends with its parent, however suddenly that
// ends: it waits for the end of a pipe that only the parent writes to, and holds no other descriptor of the parent's.
#pragma once

#include <functional>
#include <string>

#include "shim/sys.h"

namespace benchsand {

class HelperProcess {
 public:
  // What it does in place of waiting, until the pipe that it is given ends. System calls alone, too.
  using Stay = std::function<void(int lifeline)>;
  // Returns once the child has reported. `work` runs in it, between fork and exit: system calls alone. It is given its copy of
  // `descriptor` (-1: it needs none) and returns 0 or errno, which is an error here: "CALL OBJECT: strerror".
  static Result<HelperProcess> start(const std::string& call, const std::string& object,
                                     const std::function<int(int)>& work, int descriptor = -1, const Stay& stay = {});
  HelperProcess(HelperProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), lifeline_(std::move(other.lifeline_)) {}
  HelperProcess& operator=(HelperProcess&&) = delete;
  ~HelperProcess();  // killed and reaped
  pid_t pid() const { return pid_; }

 private:
  HelperProcess(pid_t pid, Fd lifeline) : pid_(pid), lifeline_(std::move(lifeline)) {}
  pid_t pid_;
  Fd lifeline_;
};

}  // namespace benchsand
