#include "shim/output_sink.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace benchsand {

namespace {

// An open file description of our own, so that O_NONBLOCK is ours alone.
Result<Fd> opened_anew(const Fd& given) {
  return sys::openat(sys::kHere, "/proc/self/fd/" + std::to_string(given.get()), O_WRONLY | O_NONBLOCK);
}

// A FIFO that nobody has open for reading cannot be opened so: to the writer that is a reader who went away.
Result<Fd> nonblocking_pipe(const Fd& given, const std::string& name) {
  auto opened = opened_anew(given);
  if (!opened && opened.error().error_number == ENXIO) {
    auto pipe = TRY(sys::pipe());
    TRY_VOID(sys::set_nonblocking(pipe.write));
    return std::move(pipe.write);
  }
  if (!opened) return fault("pass " + name + " on: " + opened.error().message);
  return opened;
}

Result<Fd> nonblocking_device(const Fd& given, const std::string& name) {
  unsigned int number = 0;
  // To open a master is to make another terminal.
  if (::ioctl(given.get(), TIOCGPTN, &number) == 0)
    return fault("pass " + name + " on: it is the master side of a terminal; give a pipe or a file");
  auto opened = opened_anew(given);
  if (!opened) return fault("pass " + name + " on: " + opened.error().message);
  return opened;
}

}  // namespace

Result<OutputSink> OutputSink::take(Fd given, const std::string& name) {
  const auto facts = TRY(sys::fstat(given, name));
  OutputSink sink;
  sink.name_ = name;
  sink.socket_ = S_ISSOCK(facts.st_mode);
  if (S_ISFIFO(facts.st_mode))
    sink.fd_ = TRY(nonblocking_pipe(given, name));
  else if (S_ISCHR(facts.st_mode))
    sink.fd_ = TRY(nonblocking_device(given, name));
  else if (S_ISREG(facts.st_mode) || sink.socket_)
    sink.fd_ = std::move(given);  // a file's offset is shared with whoever gave it, and writing to a file does not wait
  else
    return fault("pass " + name + " on: it is no pipe, FIFO, socket, file or terminal");
  return sink;
}

Result<std::size_t> OutputSink::write(std::string_view bytes) const {
  for (;;) {
    const ssize_t n = socket_ ? ::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                              : ::write(fd_.get(), bytes.data(), bytes.size());
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return sys_error("write", name_, errno);
  }
}

}  // namespace benchsand
