#include "shim/http_hijack.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "oci/engine_answer.h"
#include "oci/http_head.h"
#include "oci/units.h"
#include "shim/http_transfer.h"

namespace benchsand {

namespace {

struct Call {
  const StreamSocket& stream;
  std::uint64_t within_us;
};

std::unexpected<Error> broken(int error_number) {
  return std::unexpected(
      Error{Error::Kind::fault, std::string("the connection broke: ") + std::strerror(error_number), error_number});
}

Result<void> wait_for(const Call& call, short events) {
  const Fd* stop = call.stream.stop;
  std::array<pollfd, 2> waits = {
      {{call.stream.socket.get(), events, 0}, {stop != nullptr ? stop->get() : -1, POLLIN, 0}}};
  int n = -1;
  do {
    const std::uint64_t now_us = sys::monotonic_us();
    const std::uint64_t left_us = call.stream.deadline_us - std::min(now_us, call.stream.deadline_us);
    n = ::poll(waits.data(), waits.size(), static_cast<int>(std::min<std::uint64_t>((left_us + 999) / 1000, 60'000)));
  } while ((n < 0 && errno == EINTR) || (n == 0 && sys::monotonic_us() < call.stream.deadline_us));
  if (n < 0) return broken(errno);
  if (waits[1].revents != 0) return std::unexpected(Error{Error::Kind::fault, kToldToStop, ECANCELED});
  if (n == 0) return fault("no answer within " + format_quantity(call.within_us, Unit::duration_us));
  return {};
}

Result<void> send_all(const Call& call, std::string_view bytes) {
  while (!bytes.empty()) {
    TRY_VOID(wait_for(call, POLLOUT));
    const ssize_t n = ::send(call.stream.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EAGAIN && errno != EINTR)
      return broken(errno);
  }
  return {};
}

// False at the end of what the other side sends.
Result<bool> receive_some(const Call& call, std::string& text) {
  std::array<char, 16384> buffer;
  for (;;) {
    TRY_VOID(wait_for(call, POLLIN));
    const ssize_t n = ::recv(call.stream.socket.get(), buffer.data(), buffer.size(), 0);
    if (n >= 0) text.append(buffer.data(), static_cast<std::size_t>(n));
    if (n >= 0) return n > 0;
    if (errno != EAGAIN && errno != EINTR) return broken(errno);
  }
}

std::string head_of(const HttpRequest& request, const std::string& host) {
  std::string head = request.method + " " + request.target + " HTTP/1.1\r\nHost: " + host +
                     "\r\nUser-Agent: benchsand/" BENCHSAND_VERSION "\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n";
  if (!request.body.empty()) head += "Content-Type: " + request.content_type + "\r\n";
  return head + "Content-Length: " + std::to_string(request.body.size()) + "\r\n\r\n";
}

// The words of an answer that is no stream. Where its end is not told, none: what comes may go on for ever.
std::unexpected<Error> refused(const Call& call, const HttpHead& head, std::string body) {
  const std::string status = " (" + std::to_string(head.status) + ")";
  const std::size_t length = std::min(head.chunked ? 0 : head.content_length.value_or(body.size()), kLargestHttpHead);
  while (body.size() < length)
    if (const auto more = receive_some(call, body); !more || !*more) break;
  return fault("the engine says: " + engine_words(head.chunked ? "" : body.substr(0, length)) + status);
}

}  // namespace

Result<BegunStream> become_stream(const StreamSocket& stream, const HttpRequest& request, const std::string& host) {
  const Call call{stream, request.within_us};
  TRY_VOID(send_all(call, head_of(request, host) + request.body));
  std::string text;
  std::optional<HttpHead> head;
  while (!head) {
    if (!TRY(receive_some(call, text)))
      return fault(text.empty() ? "it closes the connection without an answer" : "the answer is cut off in its head");
    head = TRY(parse_http_head(text));
  }
  std::string rest = text.substr(head->size);
  if (head->status != 101 && head->status != 200) return refused(call, *head, std::move(rest));
  if (head->chunked || head->content_length) return fault("the answer is a document, not a stream");
  return BegunStream{std::move(rest), std::move(head->content_type)};
}

}  // namespace benchsand
