// An engine's descriptor for stdout or stderr of a container. Writing to it never waits: whoever reads there may be slow, or gone.
#pragma once

#include <string_view>

#include "shim/sys.h"

namespace benchsand {

class OutputSink {
 public:
  // Takes over a pipe, FIFO, socket, file or terminal. The given descriptor's flags stay as they are, for others share them:
  // a pipe or terminal is opened anew. SIGPIPE must be ignored. `name` is for messages.
  static Result<OutputSink> take(Fd given, const std::string& name);
  const Fd& fd() const { return fd_; }
  // How many bytes were taken; 0: it is full, wait for POLLOUT. EPIPE: nobody reads any more.
  Result<std::size_t> write(std::string_view bytes) const;

 private:
  OutputSink() = default;
  Fd fd_;
  std::string name_;
  bool socket_ = false;
};

}  // namespace benchsand
