#include "oci/sha256.h"

// The low-level calls: the EVP interface spends over a millisecond of a ten-millisecond run on finding its provider.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <array>
#include <cstdlib>

namespace benchsand {

struct Sha256::State {
  SHA256_CTX context;
};

namespace {
// These fail in theory only; a digest that is not one must never be written.
void must(int openssl_result) {
  if (openssl_result != 1) std::abort();
}
}  // namespace

Sha256::Sha256() : state_(std::make_unique<State>()) {
  must(SHA256_Init(&state_->context));
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  must(SHA256_Update(&state_->context, bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  must(SHA256_Final(digest.data(), &state_->context));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

}  // namespace benchsand
