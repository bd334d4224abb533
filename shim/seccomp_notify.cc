#include "shim/seccomp_notify.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace benchsand {

bool is_exec(const Notification& notification) {
  return notification.call == SYS_execve || notification.call == SYS_execveat;
}

Result<std::optional<Notification>> SeccompNotify::receive() const {
  // The kernel wants the structure zeroed, and may have a longer one than the headers this was built with.
  union {
    seccomp_notif notification;
    std::array<char, 256> room;
  } buffer{};
  static_assert(sizeof(seccomp_notif) <= 256);
  std::memset(&buffer, 0, sizeof buffer);
  if (::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_RECV, &buffer.notification) != 0) {
    if (errno == ENOENT || errno == EINTR) return std::nullopt;
    return sys_error("ioctl", "SECCOMP_IOCTL_NOTIF_RECV", errno);
  }
  Notification notification;
  notification.id = buffer.notification.id;
  notification.task = static_cast<pid_t>(buffer.notification.pid);
  notification.call = buffer.notification.data.nr;
  std::copy_n(std::begin(buffer.notification.data.args), notification.arguments.size(), notification.arguments.begin());
  return notification;
}

namespace {

Result<bool> send(const Fd& fd, seccomp_notif_resp& response) {
  if (::ioctl(fd.get(), SECCOMP_IOCTL_NOTIF_SEND, &response) == 0) return true;
  if (errno == ENOENT) return false;
  return sys_error("ioctl", "SECCOMP_IOCTL_NOTIF_SEND", errno);
}

}  // namespace

Result<bool> SeccompNotify::let_run(const Notification& notification) const {
  if (!learns_ && !is_let_run(notification.call))
    return fault("let " + call_name(notification.call) + " run: only exec and exit_group may be");
  seccomp_notif_resp response{};
  response.id = notification.id;
  response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  return send(fd_, response);
}

Result<bool> SeccompNotify::refuse(const Notification& notification, int errno_value) const {
  if (errno_value <= 0) return fault("refuse " + call_name(notification.call) + ": no errno is given");
  seccomp_notif_resp response{};
  response.id = notification.id;
  response.error = -errno_value;
  return send(fd_, response);
}

Result<bool> SeccompNotify::still_waits(const Notification& notification) const {
  if (::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &notification.id) == 0) return true;
  if (errno == ENOENT) return false;
  return sys_error("ioctl", "SECCOMP_IOCTL_NOTIF_ID_VALID", errno);
}

Result<SeccompListener> SeccompListener::create(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fault("bind " + path + ": longer than a socket path can be");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  SeccompListener listener;
  listener.fd_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.fd_) return sys_error("socket", "AF_UNIX", errno);
  if (::bind(listener.fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return sys_error("bind", path, errno);
  if (::listen(listener.fd_.get(), 1) != 0) return sys_error("listen", path, errno);
  return listener;
}

namespace {

struct Message {
  std::string text;
  Fd fd;
};

// Exactly one descriptor, or an error; any that came beside it are closed.
Result<Message> receive_message(const Fd& connection) {
  std::array<char, 16384> text;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
  iovec part = {text.data(), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(connection.get(), &header, MSG_CMSG_CLOEXEC);
  if (n < 0) return sys_error("recvmsg", "seccomp listener", errno);
  std::vector<Fd> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || fds.size() != 1)
    return fault("receive the seccomp fd: " + std::to_string(fds.size()) + " descriptors instead of one");
  return Message{std::string(text.data(), static_cast<std::size_t>(n)), std::move(fds.front())};
}

// The container-process-state of the OCI specification.
Result<void> check_state(const std::string& text, const std::string& id) {
  const auto state = nlohmann::json::parse(text, nullptr, false);
  const auto fds = nlohmann::json::json_pointer("/fds/0"), name = nlohmann::json::json_pointer("/state/id");
  if (state.is_discarded() || !state.contains(fds) || !state.contains(name))
    return fault("read the container state that came with the seccomp fd: not what OCI describes");
  if (state[fds] != "seccompFd" || state[name] != id)
    return fault("read the container state that came with the seccomp fd: it is of another container");
  return {};
}

// Since Linux 6.6 candidate and supervisor can take turns on one processor. Waking up another one that sleeps costs more than all
// the rest of a question. Older kernels do not know the request; nothing but time depends on it.
void wake_up_in_place(const Fd& notify) {
  constexpr std::uint64_t kSyncWakeUp = 1;                               // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
  constexpr auto kSetFlags = _IOW(SECCOMP_IOC_MAGIC, 4, std::uint64_t);  // SECCOMP_IOCTL_NOTIF_SET_FLAGS
  static_cast<void>(::ioctl(notify.get(), kSetFlags, kSyncWakeUp));
}

}  // namespace

Result<Fd> SeccompListener::accept_connection() const {
  Fd connection(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection) return sys_error("accept", "seccomp listener", errno);
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return sys_error("getsockopt", "SO_PEERCRED", errno);
  if (peer.uid != 0)
    return fault("accept the seccomp fd: it comes from user " + std::to_string(peer.uid) + ", not root");
  return connection;
}

Result<SeccompNotify> SeccompListener::accept(const std::string& id, std::uint64_t deadline_us) const {
  const Fd connection = TRY(accept_connection());
  if (TRY(sys::poll_one(connection, POLLIN, deadline_us)) == 0)
    return fault("receive the seccomp fd: nothing came in time");
  return receive_seccomp_fd(connection, id);
}

Result<SeccompNotify> receive_seccomp_fd(const Fd& connection, const std::string& id) {
  Message message = TRY(receive_message(connection));
  TRY_VOID(check_state(message.text, id));
  wake_up_in_place(message.fd);
  return SeccompNotify(std::move(message.fd));
}

Result<void> require_seccomp_notify() {
  const std::uint32_t action = SECCOMP_RET_USER_NOTIF;
  if (::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0) return {};
  return fault(std::string("find seccomp user notification: ") + std::strerror(errno) +
               "; benchsand needs Linux 5.7 or newer with CONFIG_SECCOMP_FILTER, and must not itself run under a "
               "seccomp filter");
}

}  // namespace benchsand
