// How the calls of an engine (`benchsand-runtime start`, exec, update, delete) talk to the monitor of their container: a socket
// in its run folder, which only root can enter. One JSON document a message, one conversation a connection.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kControlName = "control";

class ControlConnection {
 public:
  ControlConnection() = default;
  explicit ControlConnection(Fd fd) : fd_(std::move(fd)) {}
  // nullopt: nobody listens, so the monitor has ended.
  static Result<std::optional<ControlConnection>> to_monitor(const std::string& run_folder);
  static Result<std::optional<ControlConnection>> to(const std::string& socket);

  const Fd& fd() const { return fd_; }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  Result<void> send(const nlohmann::json& message) const;
  // null: the other side has closed. A message that is not a JSON object is an error.
  Result<nlohmann::json> receive(std::uint64_t deadline_us) const;

 private:
  Fd fd_;
};

class ControlListener {
 public:
  ControlListener() = default;
  static Result<ControlListener> create(const std::string& socket);
  const Fd& fd() const { return fd_; }
  // From a root process, or an error. Call it when fd() is readable.
  Result<ControlConnection> accept() const;

 private:
  Fd fd_;
};

// The monitor's side: everybody who talks to it, behind one descriptor that is readable when there is something to hear. A caller
// that stops in the middle of a sentence holds nobody up.
class ControlDesk {
 public:
  struct Heard {
    int caller = -1;
    nlohmann::json message;  // null: the caller has gone
  };
  static Result<ControlDesk> open(const std::string& run_folder);
  // Somebody to whom we have connected, as if it had; its number as a caller.
  Result<int> adopt(ControlConnection connection);
  const Fd& fd() const { return epoll_; }
  // One thing that was said, or nullopt. An error is a caller's, who is sent away; the desk goes on.
  Result<std::optional<Heard>> hear();
  Result<void> say(int caller, const nlohmann::json& message);
  void dismiss(int caller) { callers_.erase(caller); }

 private:
  Result<void> wait_for(const Fd& fd, int key);
  ControlListener listener_;
  Fd epoll_;
  std::map<int, ControlConnection> callers_;
};

}  // namespace benchsand
