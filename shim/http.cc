#include "shim/http.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "oci/http_head.h"
#include "oci/report.h"
#include "oci/units.h"
#include "shim/api_places.h"
#include "shim/engine_ssh.h"
#include "shim/http_hijack.h"
#include "shim/http_transfer.h"

namespace benchsand {

namespace {

// What libcurl has a callback say to it; the transfer knows why it was given up.
struct Transfer : HttpTransfer {
  CURL* easy = nullptr;
};

int status_of(CURL* easy) {
  long status = 0;
  ::curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

std::size_t on_head(char* bytes, std::size_t size, std::size_t count, void* data) {
  return static_cast<Transfer*>(data)->take_head_line({bytes, size * count}) ? size * count : 0;
}

std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* data) {
  auto& transfer = *static_cast<Transfer*>(data);
  return transfer.take_body({bytes, size * count}, status_of(transfer.easy)) ? size * count : 0;
}

std::size_t on_source(char* buffer, std::size_t size, std::size_t count, void* data) {
  return static_cast<Transfer*>(data)->give(buffer, size * count).value_or(CURL_READFUNC_ABORT);
}

curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

Result<std::vector<int>> inheritable_descriptors() {
  std::vector<int> found;
  for (const auto& name : TRY(sys::list_directory(sys::kHere, "/proc/self/fd"))) {
    const int fd = std::stoi(name);
    if (const int flags = ::fcntl(fd, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) == 0) found.push_back(fd);
  }
  return found;
}

// libcurl 7.88 makes a pair of sockets for itself that a program which is executed would inherit.
Result<CURLM*> new_multi() {
  const auto before = TRY(inheritable_descriptors());
  CURLM* multi = ::curl_multi_init();
  if (multi == nullptr) return fault("start libcurl: curl_multi_init failed");
  const auto after = inheritable_descriptors();
  if (!after) {
    ::curl_multi_cleanup(multi);
    return std::unexpected(after.error());
  }
  for (const int fd : *after)
    if (std::find(before.begin(), before.end(), fd) == before.end()) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return multi;
}

// Whatever became of the call, the next one is added again; of one that was not done, the connection is closed.
struct Removed {
  CURLM* multi;
  CURL* easy;
  ~Removed() { ::curl_multi_remove_handle(multi, easy); }
};

struct HeaderList {
  curl_slist* list = nullptr;
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { ::curl_slist_free_all(list); }
  void add(const std::string& line) { list = ::curl_slist_append(list, line.c_str()); }
};

std::string authority(const Endpoint& endpoint) {
  if (endpoint.transport == Endpoint::Transport::unix_socket || endpoint.transport == Endpoint::Transport::ssh)
    return "localhost";
  return endpoint.text().substr(endpoint.text().find("://") + 3);
}

}  // namespace

struct Http::Parts {
  Endpoint endpoint;
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  std::array<char, CURL_ERROR_SIZE> words{};
  CURLcode option = CURLE_OK;  // of all that were set, the first that failed
  const Fd* stop = nullptr;
  std::optional<SshTunnel> tunnel;

  Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    ::curl_easy_cleanup(easy);
    ::curl_multi_cleanup(multi);
  }

  template <class Value>
  void set(CURLoption name, Value value) {
    if (option == CURLE_OK) option = ::curl_easy_setopt(easy, name, value);
  }

  std::unexpected<Error> failed(const HttpRequest& request, const std::string& why, int error_number = 0);
  int os_error() const;
  std::pair<std::string, int> why_not_connected() const;
  std::unexpected<Error> failed(const HttpRequest& request, const Transfer& transfer, CURLcode code);
  void set_connection();
  void set_tls();
  void set_request(const HttpRequest& request, Transfer& transfer, HeaderList& headers);
  Result<CURLcode> drive(const HttpRequest& request, const Transfer& transfer);
  Result<HttpAnswer> perform(const HttpRequest& request, const HttpSink* sink, const HttpSource* source);
  Result<Fd> connect(const HttpRequest& request);
};

std::unexpected<Error> Http::Parts::failed(const HttpRequest& request, const std::string& why, int error_number) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  const std::string ssh = tunnel ? tunnel->words() : "";
  return std::unexpected(Error{Error::Kind::fault,
                               request.method + " " + on_one_line(path) + " at " + endpoint.text() + " (" +
                                   endpoint.from + "): " + why + (ssh.empty() ? "" : " (ssh says: " + ssh + ")"),
                               error_number});
}

int Http::Parts::os_error() const {
  long number = 0;
  ::curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
  return static_cast<int>(number);
}

std::pair<std::string, int> Http::Parts::why_not_connected() const {
  const int failed = os_error();
  if (failed == 0) return {words.data(), 0};
  const bool is_unix = endpoint.transport == Endpoint::Transport::unix_socket;
  if (is_unix && failed == ENOENT) return {"there is no such socket", failed};
  if (failed != ECONNREFUSED) return {std::strerror(failed), failed};
  if (is_unix && is_no_socket(endpoint.path)) return {kNotASocket, ENOTSOCK};
  return {"nobody listens there", failed};
}

std::unexpected<Error> Http::Parts::failed(const HttpRequest& request, const Transfer& transfer, CURLcode code) {
  if (transfer.failed) return failed(request, transfer.failed->message, transfer.failed->error_number);
  const std::string after = " after " + std::to_string(transfer.body_bytes) + " bytes";
  switch (code) {
    case CURLE_COULDNT_CONNECT: {
      const auto [why, number] = why_not_connected();
      return failed(request, why, number);
    }
    case CURLE_COULDNT_RESOLVE_HOST:
      return failed(request, "the name of the host is not known");
    case CURLE_GOT_NOTHING:
      return failed(request, "it closes the connection without an answer");
    case CURLE_PARTIAL_FILE:
      return failed(request, "the answer is cut off" + after);
    case CURLE_OUT_OF_MEMORY:  // one line of the head was too long for libcurl
      return failed(request, kHeadTooLarge);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return failed(request, kNotHttp);
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
      if (endpoint.transport == Endpoint::Transport::tls) return failed(request, on_one_line(words.data()));
      if (const int number = os_error(); number != 0)
        return failed(request, std::string("the connection broke: ") + std::strerror(number), number);
      return failed(request, kNotHttp);
    default:
      return failed(request, on_one_line(words[0] != 0 ? words.data() : ::curl_easy_strerror(code)));
  }
}

// A unix socket's peer is this host; what an environment says of proxies and of passwords is for other servers.
void Http::Parts::set_connection() {
  ::curl_easy_reset(easy);
  option = CURLE_OK;
  set(CURLOPT_ERRORBUFFER, words.data());
  set(CURLOPT_OPENSOCKETFUNCTION, open_socket);
  set(CURLOPT_PROXY, "");
  set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_PATH_AS_IS, 1L);
  // A connection for each call: on one that was used before, what an engine had said too much would be the next answer, and
  // libcurl would send a call again that got none.
  set(CURLOPT_FRESH_CONNECT, 1L);
  // OpenSSL writes without MSG_NOSIGNAL: with TLS libcurl holds SIGPIPE off itself, which this option would forbid.
  set(CURLOPT_NOSIGNAL, endpoint.transport == Endpoint::Transport::tls ? 0L : 1L);
  if (endpoint.transport == Endpoint::Transport::unix_socket) set(CURLOPT_UNIX_SOCKET_PATH, endpoint.path.c_str());
  if (tunnel) set(CURLOPT_UNIX_SOCKET_PATH, tunnel->socket().c_str());
  if (endpoint.transport == Endpoint::Transport::tls) set_tls();
}

void Http::Parts::set_tls() {
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_VERIFYPEER, endpoint.verify ? 1L : 0L);
  set(CURLOPT_SSL_VERIFYHOST, endpoint.verify ? 2L : 0L);
  if (!endpoint.ca_file.empty()) set(CURLOPT_CAINFO, endpoint.ca_file.c_str());
  if (!endpoint.certificate_file.empty()) set(CURLOPT_SSLCERT, endpoint.certificate_file.c_str());
  if (!endpoint.key_file.empty()) set(CURLOPT_SSLKEY, endpoint.key_file.c_str());
}

void Http::Parts::set_request(const HttpRequest& request, Transfer& transfer, HeaderList& headers) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  set(CURLOPT_URL,
      ((endpoint.transport == Endpoint::Transport::tls ? "https://" : "http://") + authority(endpoint) + request.target)
          .c_str());
  set(CURLOPT_FORBID_REUSE, 1L);
  set(CURLOPT_USERAGENT, "benchsand/" BENCHSAND_VERSION);
  if (transfer.source != nullptr) {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_READFUNCTION, on_source);
    set(CURLOPT_READDATA, &transfer);
    headers.add("Transfer-Encoding: chunked");
  } else if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (!reads) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, request.body.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (!reads) set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  headers.add("Expect:");
  const bool has_body = transfer.source != nullptr || !request.body.empty();
  headers.add(has_body ? "Content-Type: " + request.content_type : "Content-Type:");
  set(CURLOPT_HTTPHEADER, headers.list);
  set(CURLOPT_HEADERFUNCTION, on_head);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, &transfer);
}

// Until it is done, or too late.
Result<CURLcode> Http::Parts::drive(const HttpRequest& request, const Transfer& transfer) {
  const std::uint64_t started_us = sys::monotonic_us();
  if (::curl_multi_add_handle(multi, easy) != CURLM_OK) return failed(request, "libcurl does not take the call");
  for (int running = 1;;) {
    if (::curl_multi_perform(multi, &running) != CURLM_OK) return failed(request, "libcurl gave up");
    if (running == 0) break;
    const std::uint64_t now_us = sys::monotonic_us();
    const std::uint64_t deadline_us =
        (transfer.is_stream() ? std::max(started_us, transfer.moved_us) : started_us) + request.within_us;
    if (now_us >= deadline_us)
      return failed(request, (transfer.is_stream() ? "nothing came for " : "no answer within ") +
                                 format_quantity(request.within_us, Unit::duration_us));
    const auto wait_ms = static_cast<int>(std::min<std::uint64_t>((deadline_us - now_us) / 1000 + 1, 60'000));
    curl_waitfd told = {stop != nullptr ? stop->get() : -1, CURL_WAIT_POLLIN, 0};
    if (::curl_multi_poll(multi, &told, stop != nullptr ? 1 : 0, wait_ms, nullptr) != CURLM_OK)
      return failed(request, "libcurl gave up");
    if (told.revents != 0) return failed(request, kToldToStop, ECANCELED);
  }
  int left = 0;
  const CURLMsg* message = ::curl_multi_info_read(multi, &left);
  if (message == nullptr || message->msg != CURLMSG_DONE) return failed(request, "libcurl gave up");
  return message->data.result;
}

Result<HttpAnswer> Http::Parts::perform(const HttpRequest& request, const HttpSink* sink, const HttpSource* source) {
  if (!is_http_target(request.target)) return failed(request, "the target has a character that no address has");
  Transfer transfer;
  transfer.easy = easy;
  transfer.sink = sink;
  transfer.source = source;
  HeaderList headers;
  words[0] = 0;
  set_connection();
  set_request(request, transfer, headers);
  if (option != CURLE_OK) return failed(request, ::curl_easy_strerror(option));
  const Removed removed{multi, easy};
  const CURLcode code = TRY(drive(request, transfer));
  if (code != CURLE_OK || transfer.failed) return failed(request, transfer, code);
  transfer.answer.status = status_of(easy);
  if (!transfer.head_ended) return failed(request, "the answer is cut off in its head");
  const bool has_body = request.method != "HEAD" && transfer.answer.status != 204;
  // Such an answer ends where the connection does, and so would one that was cut off.
  if (has_body && transfer.answer.status / 100 == 2 && !transfer.sized)
    return failed(request, "the answer does not say how long it is");
  const char* type = nullptr;
  ::curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
  if (type != nullptr) transfer.answer.content_type = type;
  return std::move(transfer.answer);
}

Result<Fd> Http::Parts::connect(const HttpRequest& request) {
  words[0] = 0;
  set_connection();
  set(CURLOPT_URL, ("http://" + authority(endpoint)).c_str());
  set(CURLOPT_CONNECT_ONLY, 1L);
  if (option != CURLE_OK) return failed(request, ::curl_easy_strerror(option));
  const Transfer transfer;
  const Removed removed{multi, easy};  // which closes libcurl's own descriptor of the socket
  if (const CURLcode code = TRY(drive(request, transfer)); code != CURLE_OK) return failed(request, transfer, code);
  curl_socket_t socket = CURL_SOCKET_BAD;
  ::curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket);
  Fd copy(::fcntl(socket, F_DUPFD_CLOEXEC, 3));
  if (!copy) return failed(request, std::string("fcntl F_DUPFD: ") + std::strerror(errno), errno);
  return copy;
}

Http::Http(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Http::Http(Http&&) noexcept = default;
Http& Http::operator=(Http&&) noexcept = default;
Http::~Http() = default;

Result<Http> Http::to(Endpoint endpoint) {
  static const CURLcode started = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) return fault(std::string("start libcurl: ") + ::curl_easy_strerror(started));
  auto parts = std::make_unique<Parts>();
  parts->endpoint = std::move(endpoint);
  parts->multi = TRY(new_multi());
  parts->easy = ::curl_easy_init();
  if (parts->easy == nullptr) return fault("start libcurl: curl_easy_init failed");
  if (parts->endpoint.transport == Endpoint::Transport::ssh)
    parts->tunnel.emplace(TRY(SshTunnel::open(parts->endpoint)));
  return Http(std::move(parts));
}

const Endpoint& Http::endpoint() const {
  return parts_->endpoint;
}

void Http::stop_at(const Fd& readable) {
  parts_->stop = &readable;
}

void Http::stop_no_more() {
  parts_->stop = nullptr;
}

Result<HttpAnswer> Http::call(const HttpRequest& request) {
  return parts_->perform(request, nullptr, nullptr);
}

Result<HttpAnswer> Http::download(const HttpRequest& request, const HttpSink& sink) {
  return parts_->perform(request, &sink, nullptr);
}

Result<HttpAnswer> Http::upload(const HttpRequest& request, const HttpSource& source) {
  return parts_->perform(request, nullptr, &source);
}

Result<Http::Hijacked> Http::hijack(const HttpRequest& request) {
  if (!is_http_target(request.target)) return parts_->failed(request, "the target has a character that no address has");
  if (parts_->endpoint.transport == Endpoint::Transport::tls)
    return parts_->failed(request, "a connection with TLS does not become a stream (cure: ssh://)");
  const std::uint64_t deadline_us = sys::monotonic_us() + request.within_us;
  Fd socket = TRY(parts_->connect(request));
  auto begun = become_stream({socket, parts_->stop, deadline_us}, request, authority(parts_->endpoint));
  if (!begun) return parts_->failed(request, begun.error().message, begun.error().error_number);
  return Hijacked{std::move(socket), std::move(begun->rest), std::move(begun->content_type)};
}

}  // namespace benchsand
