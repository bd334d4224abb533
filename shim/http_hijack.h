// A call on a connected socket that is answered by turning the connection into a plain stream. Own head and own reading: libcurl
// would take what comes after the head for a body.
#pragma once

#include <cstdint>
#include <string>

#include "shim/http.h"

namespace benchsand {

struct BegunStream {
  std::string rest;  // of the stream, what came with the head
  std::string content_type;
};

struct StreamSocket {
  const Fd& socket;  // does not block
  const Fd* stop;    // readable: give up. May be null
  std::uint64_t deadline_us;
};

// Errors say why, not of what.
Result<BegunStream> become_stream(const StreamSocket& stream, const HttpRequest& request, const std::string& host);

}  // namespace benchsand
