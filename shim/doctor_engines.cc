// Docker and Podman, as they describe themselves: GET /info on their sockets, which are where `run` looks for them.
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "shim/api_places.h"
#include "shim/doctor.h"
#include "shim/sys.h"

namespace benchsand {

namespace {

constexpr timeval kPatience = {2, 0};
constexpr std::size_t kLongestAnswer = 4 << 20;

Result<Fd> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fault("connect " + path + ": longer than a socket path can be");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection) return sys_error("socket", "AF_UNIX", errno);
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
    if (::setsockopt(connection.get(), SOL_SOCKET, option, &kPatience, sizeof kPatience) != 0)
      return sys_error("setsockopt", path, errno);
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int failed = errno;
    if (failed == ECONNREFUSED && is_no_socket(path)) return fault("connect " + path + ": " + kNotASocket);
    return sys_error("connect", path, failed);
  }
  return connection;
}

// HTTP/1.0: the answer ends with the connection, and has no chunks.
Result<nlohmann::json> info_from(const std::string& path) {
  const Fd connection = TRY(connect_to(path));
  TRY_VOID(sys::write_all(connection, "GET /info HTTP/1.0\r\nHost: localhost\r\n\r\n", path));
  std::string answer;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t n = ::read(connection.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read", path, errno);
    if (n == 0) break;
    answer.append(buffer.data(), static_cast<std::size_t>(n));
    if (answer.size() > kLongestAnswer) return fault("read " + path + ": the answer is too long");
  }
  const auto body = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.") || body == std::string::npos) return fault("read " + path + ": no HTTP answer");
  auto info = nlohmann::json::parse(answer.substr(body + 4), nullptr, false);
  if (!info.is_object()) return fault("read " + path + ": the answer is no JSON object");
  return info;
}

std::string first_existing(const std::vector<std::string>& paths) {
  for (const auto& path : paths)
    if (const auto found = sys::exists(sys::kHere, path); found && *found) return path;
  return "";
}

std::string said(const nlohmann::json& info, const char* key) {
  const auto found = info.find(key);
  return found != info.end() && found->is_string() ? found->get<std::string>() : "";
}

// The socket of the engine, or why there is none to ask.
Result<std::string> socket_of(ApiKind kind) {
  const Endpoint place = TRY(find_endpoint(kind));
  if (!place.is_local())
    return fault(place.from + " says " + place.text() + ", and doctor asks no engine that is not on a socket here");
  if (TRY(sys::exists(sys::kHere, place.path))) return place.path;
  return fault(place.from == kByDefault ? kNoSocket
                                        : place.from + " says " + place.text() + ", and no socket is there");
}

DoctorEngine ask(ApiKind kind) {
  DoctorEngine engine;
  engine.name = to_text(kind);
  engine.client = first_existing({"/usr/local/bin/" + engine.name, "/usr/bin/" + engine.name, "/bin/" + engine.name});
  const auto socket = socket_of(kind);
  const auto info = socket ? info_from(*socket) : Result<nlohmann::json>(std::unexpected(socket.error()));
  if (socket) engine.socket = *socket;
  engine.reachable = info.has_value();
  if (!info) {
    engine.why = info.error().message;
    return engine;
  }
  engine.version = said(*info, "ServerVersion");
  engine.default_runtime = said(*info, "DefaultRuntime");
  engine.cgroup_driver = said(*info, "CgroupDriver");
  return engine;
}

}  // namespace

std::vector<DoctorEngine> ask_engines() {
  return {ask(ApiKind::docker), ask(ApiKind::podman)};
}

}  // namespace benchsand
