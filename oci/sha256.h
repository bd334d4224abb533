// SHA-256 as lower-case hexadecimal (OpenSSL).
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace benchsand {

std::string sha256_hex(std::string_view bytes);

// For streams.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::string_view bytes);
  std::string hex();  // ends the stream

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace benchsand
