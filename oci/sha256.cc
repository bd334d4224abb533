#include "oci/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>

namespace benchsand {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

namespace {
// OpenSSL fails here only without memory or without its default provider; a digest that is not one must never be written.
void must(int openssl_result) {
  if (openssl_result != 1) std::abort();
}
}  // namespace

Sha256::Sha256() : state_(std::make_unique<State>()) {
  must(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  must(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  must(EVP_DigestFinal_ex(state_->context, digest.data(), &length));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

}  // namespace benchsand
