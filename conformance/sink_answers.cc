#include "conformance/sink_answers.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "conformance/sink.h"

namespace benchsand::conformance {

namespace {

constexpr std::size_t kMostConnections = 64, kLargestPacket = 1500;
constexpr std::string_view kPage =
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
using Packet = std::array<unsigned char, kLargestPacket>;

// Of a DNS message: the header, then the first question, which is a name, a type and a class.
constexpr std::size_t kHeader = 12, kTypeAndClass = 4;
constexpr unsigned kTypeA = 1;
// A pointer to the name of the question, type A, class IN, ten seconds, and 192.0.2.1, where the sink answers too.
constexpr unsigned char kAddress[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 10, 0, 4, 192, 0, 2, 1};

// The end of the first question, or 0 where there is none.
std::size_t end_of_question(const Packet& packet, std::size_t size) {
  std::size_t at = kHeader;
  while (at < size && packet[at] != 0) at += packet[at] + std::size_t{1};
  at += 1 + kTypeAndClass;
  return at <= size ? at : 0;
}

// In place; the size of the answer, or 0 where there was no question. Of a name there is an IPv4 address and nothing else.
std::size_t make_dns_answer(Packet& packet, std::size_t size) {
  const std::size_t end = end_of_question(packet, size);
  if (end == 0 || end + sizeof kAddress > packet.size()) return 0;
  const bool has_address = packet[end - 4] == 0 && packet[end - 3] == kTypeA;
  packet[2] |= 0x80;  // an answer
  packet[3] = 0x80;   // recursion available, no error
  const unsigned char counts[] = {0, 1, 0, has_address ? std::uint8_t{1} : std::uint8_t{0}, 0, 0, 0, 0};
  std::copy(std::begin(counts), std::end(counts), packet.begin() + 4);
  if (!has_address) return end;
  std::copy(std::begin(kAddress), std::end(kAddress), packet.begin() + static_cast<std::ptrdiff_t>(end));
  return end + sizeof kAddress;
}

class Answers {
 public:
  Answers(const SinkSockets& sockets, int lifeline) : sockets_(sockets), lifeline_(lifeline) {}

  // One round; false: its caller is gone.
  bool round();

 private:
  struct Connection {
    int number = -1;
    std::uint16_t port = 0;
  };
  void accept_all();
  void receive_all();
  bool receive(int number);
  void speak(Connection& connection);
  bool tell();

  const SinkSockets& sockets_;
  int lifeline_;
  std::array<Connection, kMostConnections> connections_;
  Reached reached_;
};

void Answers::accept_all() {
  for (std::size_t i = 0; i < sockets_.count; ++i) {
    const SinkSocket& socket = sockets_.all[i];
    if (!socket.listens) continue;
    for (;;) {
      const int number = ::accept4(socket.number, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (number < 0 && errno != ECONNABORTED) break;
      ++reached_.connections;
      if (number < 0) continue;
      const auto free = std::find_if(connections_.begin(), connections_.end(),
                                     [](const Connection& connection) { return connection.number < 0; });
      if (free == connections_.end())
        ::close(number);
      else
        *free = {number, socket.port};
    }
  }
}

void Answers::receive_all() {
  for (std::size_t i = 0; i < sockets_.count; ++i) {
    const SinkSocket& socket = sockets_.all[i];
    if (socket.listens) continue;
    while (receive(socket.number)) ++reached_.datagrams;
  }
}

// With its control message an answer goes out from the address that was asked, which of a loopback interface is not its first.
bool Answers::receive(int number) {
  Packet packet;
  sockaddr_storage from{};
  alignas(cmsghdr) std::array<char, 128> control;
  iovec bytes{packet.data(), packet.size()};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(number, &message, 0);
  if (n < 0) return false;
  bytes.iov_len = make_dns_answer(packet, static_cast<std::size_t>(n));
  message.msg_flags = 0;
  if (bytes.iov_len > 0) static_cast<void>(::sendmsg(number, &message, MSG_NOSIGNAL));
  return true;
}

// The other side has spoken or closed.
void Answers::speak(Connection& connection) {
  Packet packet;
  const ssize_t n = ::recv(connection.number, packet.data(), packet.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0 && connection.port == kHttpPort)
    static_cast<void>(::send(connection.number, kPage.data(), kPage.size(), MSG_NOSIGNAL));
  ::close(connection.number);
  connection = {};
}

// What came before the question is counted, whether or not it was seen to come.
bool Answers::tell() {
  char question = 0;
  if (::recv(sockets_.asked, &question, 1, 0) <= 0) return false;
  accept_all();
  receive_all();
  const bool told = ::send(sockets_.asked, &reached_, sizeof reached_, MSG_NOSIGNAL) == sizeof reached_;
  reached_ = {};
  return told;
}

bool Answers::round() {
  std::array<pollfd, 2 + std::tuple_size_v<decltype(SinkSockets::all)> + kMostConnections> waits{};
  std::size_t count = 0;
  waits[count++] = {lifeline_, POLLIN, 0};
  waits[count++] = {sockets_.asked, POLLIN, 0};
  for (std::size_t i = 0; i < sockets_.count; ++i) waits[count++] = {sockets_.all[i].number, POLLIN, 0};
  const std::size_t first = count;
  for (const Connection& connection : connections_) waits[count++] = {connection.number, POLLIN, 0};
  if (::poll(waits.data(), count, -1) < 0) return errno == EINTR;
  if (waits[0].revents != 0) return false;
  for (std::size_t i = 0; i < connections_.size(); ++i)
    if (waits[first + i].revents != 0) speak(connections_[i]);
  accept_all();
  receive_all();
  return waits[1].revents == 0 || tell();
}

}  // namespace

void answer(const SinkSockets& sockets, int lifeline) {
  Answers answers(sockets, lifeline);
  while (answers.round()) {
  }
}

}  // namespace benchsand::conformance
