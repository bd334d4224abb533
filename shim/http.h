// HTTP/1.1 to the API of a container engine. http.cc is the only file that knows libcurl.
//
// Every call has a deadline and every answer a largest size: an engine may hang, send half of what it promised, or never stop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "oci/engine_endpoint.h"
#include "oci/http_head.h"
#include "shim/sys.h"

namespace benchsand {

struct HttpRequest {
  std::string method;                    // GET, POST, DELETE, HEAD
  std::string target;                    // path and query, percent-encoded
  std::string body;                      // JSON; empty: none
  std::uint64_t within_us = 30'000'000;  // the whole call; of a stream: the longest silence
  std::string content_type = "application/json";
};

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::string content_type;
};

inline constexpr std::size_t kLargestAnswer = 16 << 20;

class Http {
 public:
  static Result<Http> to(Endpoint endpoint);
  Http(Http&&) noexcept;
  Http& operator=(Http&&) noexcept;
  ~Http();

  const Endpoint& endpoint() const;
  // A call ends at once with error_number ECANCELED when this becomes readable (a signalfd, say). It has to outlive the calls.
  void stop_at(const Fd& readable);
  void stop_no_more();  // what takes things away is called in any case

  // Kind fault: no connection, cut off, too late, too large. An answer of any status is an answer.
  Result<HttpAnswer> call(const HttpRequest& request);
  // The body of a 2xx answer goes to `sink` as it comes; of any other it is in the answer.
  Result<HttpAnswer> download(const HttpRequest& request, const std::function<Result<void>(std::string_view)>& sink);
  // The body comes from `source`, chunked: it fills the buffer and says how much; 0 is the end.
  Result<HttpAnswer> upload(const HttpRequest& request,
                            const std::function<Result<std::size_t>(char* buffer, std::size_t size)>& source);

  // A connection that the engine turns into a plain stream (attach): what has come of the stream with the head, and the socket,
  // which does not block. Any other answer is an error with the engine's own words. Not with TLS.
  struct Hijacked {
    Fd socket;
    std::string begun;
    std::string content_type;  // application/vnd.docker.raw-stream or ….multiplexed-stream; empty: not said
  };
  Result<Hijacked> hijack(const HttpRequest& request);

 private:
  struct Parts;
  explicit Http(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace benchsand
