#include "shim/control.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace benchsand {

namespace {

constexpr std::size_t kLargestMessage = 192 * 1024;  // below the usual send buffer of a socket
constexpr int kWaiting = 16;
constexpr int kListener = -1;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fault("use " + path + ": longer than a socket path can be");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<Fd> seqpacket() {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return sys_error("socket", "AF_UNIX", errno);
  return fd;
}

}  // namespace

Result<std::optional<ControlConnection>> ControlConnection::to_monitor(const std::string& run_folder) {
  return to(run_folder + "/" + kControlName);
}

Result<std::optional<ControlConnection>> ControlConnection::to(const std::string& socket) {
  const auto address = TRY(address_of(socket));
  Fd fd = TRY(seqpacket());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return ControlConnection(std::move(fd));
  if (errno == ENOENT || errno == ECONNREFUSED) return std::nullopt;
  return sys_error("connect", socket, errno);
}

Result<void> ControlConnection::send(const nlohmann::json& message) const {
  // An error may name a file of any bytes.
  const std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kLargestMessage)
    return fault("send " + std::to_string(text.size()) + " bytes to the monitor: more than one message may hold");
  if (::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) return sys_error("send", "the monitor", errno);
  return {};
}

Result<nlohmann::json> ControlConnection::receive(std::uint64_t deadline_us) const {
  if (TRY(sys::poll_one(fd_, POLLIN, deadline_us)) == 0)
    return fault("wait for the monitor of the container: it did not answer in time");
  std::string text(kLargestMessage, '\0');
  const ssize_t n = ::recv(fd_.get(), text.data(), text.size(), MSG_TRUNC);
  if (n < 0 && errno != ECONNRESET) return sys_error("recv", "the monitor", errno);
  if (n <= 0) return nlohmann::json();
  if (static_cast<std::size_t>(n) > text.size()) return fault("read a message to the monitor: it is too long");
  auto message = nlohmann::json::parse(text.data(), text.data() + n, nullptr, false);
  if (!message.is_object()) return fault("read a message to the monitor: it is not a JSON object");
  return message;
}

Result<ControlListener> ControlListener::create(const std::string& socket) {
  const auto address = TRY(address_of(socket));
  ControlListener listener;
  listener.fd_ = TRY(seqpacket());
  if (::bind(listener.fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return sys_error("bind", socket, errno);
  if (::listen(listener.fd_.get(), kWaiting) != 0) return sys_error("listen", socket, errno);
  return listener;
}

Result<ControlConnection> ControlListener::accept() const {
  Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return sys_error("accept", "the monitor's control socket", errno);
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return sys_error("getsockopt", "SO_PEERCRED", errno);
  if (peer.uid != 0) return fault("talk to the monitor: user " + std::to_string(peer.uid) + " has connected, not root");
  return ControlConnection(std::move(fd));
}

Result<ControlDesk> ControlDesk::open(const std::string& run_folder) {
  ControlDesk desk;
  desk.listener_ = TRY(ControlListener::create(run_folder + "/" + kControlName));
  desk.epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!desk.epoll_) return sys_error("epoll_create1", "the control socket", errno);
  TRY_VOID(desk.wait_for(desk.listener_.fd(), kListener));
  return desk;
}

Result<void> ControlDesk::wait_for(const Fd& fd, int key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = key;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0)
    return sys_error("epoll_ctl", "the control socket", errno);
  return {};
}

Result<int> ControlDesk::adopt(ControlConnection connection) {
  const int caller = connection.fd().get();
  TRY_VOID(wait_for(connection.fd(), caller));
  callers_.insert_or_assign(caller, std::move(connection));
  return caller;
}

Result<std::optional<ControlDesk::Heard>> ControlDesk::hear() {
  epoll_event event{};
  const int n = ::epoll_wait(epoll_.get(), &event, 1, 0);
  if (n < 0 && errno != EINTR) return sys_error("epoll_wait", "the control socket", errno);
  if (n <= 0) return std::nullopt;
  if (event.data.fd == kListener) {
    TRY(adopt(TRY(listener_.accept())));
    return std::nullopt;
  }
  const int caller = event.data.fd;
  const auto found = callers_.find(caller);
  if (found == callers_.end()) return std::nullopt;
  auto message = found->second.receive(sys::monotonic_us());
  if (!message || message->is_null()) callers_.erase(found);
  if (!message) return std::unexpected(message.error());
  return Heard{caller, std::move(*message)};
}

Result<void> ControlDesk::say(int caller, const nlohmann::json& message) {
  const auto found = callers_.find(caller);
  if (found == callers_.end()) return fault("answer a call: the caller has gone");
  return found->second.send(message);
}

}  // namespace benchsand
