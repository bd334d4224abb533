// Compressed files: every form as it is meant, one compression deep, and bounded whatever is in it.
#include "shim/decompressor.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "shim/image_source.h"
#include "shim/tar_reader.h"
#include "support.h"
#include "tar_maker.h"

using namespace benchsand;
using namespace benchsand::support;

namespace {

std::string gzip(const std::string& plain) {
  z_stream stream{};
  REQUIRE(::deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string made(::deflateBound(&stream, plain.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  made.resize(stream.total_out);
  ::deflateEnd(&stream);
  return made;
}

std::string xz(const std::string& plain) {
  std::string made(::lzma_stream_buffer_bound(plain.size()), '\0');
  std::size_t size = 0;
  REQUIRE(::lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(plain.data()),
                                    plain.size(), reinterpret_cast<std::uint8_t*>(made.data()), &size,
                                    made.size()) == LZMA_OK);
  return made.substr(0, size);
}

std::string zstd(const std::string& plain) {
  std::string made(::ZSTD_compressBound(plain.size()), '\0');
  const std::size_t size = ::ZSTD_compress(made.data(), made.size(), plain.data(), plain.size(), 3);
  REQUIRE_FALSE(::ZSTD_isError(size));
  return made.substr(0, size);
}

using Compress = std::string (*)(const std::string&);
constexpr Compress kAll[] = {gzip, xz, zstd};

std::string some_bytes(std::size_t size) {
  std::string bytes;
  for (std::uint32_t state = 1; bytes.size() < size; state = state * 1664525 + 1013904223)
    bytes += static_cast<char>(state >> 24);
  return bytes;
}

// What it is, or the error.
std::string plain(const std::string& bytes, std::uint64_t most = 1 << 30) {
  const TempFolder folder;
  const Fd file = *sys::openat(sys::kHere, folder.write("file", bytes), O_RDONLY);
  std::string seen, all;
  Decompressor from(file, most, [&](std::string_view piece) { seen += piece; });
  for (;;) {
    const auto piece = from.read();
    if (!piece) return piece.error().message;
    if (piece->empty()) break;
    all += *piece;
  }
  CHECK(seen == bytes);
  return all;
}

std::string first_entry(const std::string& bytes) {
  const TempFolder folder;
  const Fd file = *sys::openat(sys::kHere, folder.write("file", bytes), O_RDONLY);
  auto tar = TarReader::open(file, "T", 1 << 30);
  if (!tar) return tar.error().message;
  const auto entry = tar->next();
  return entry ? archive_entry_pathname(*entry) : entry.error().message;
}

std::string error_of(const auto& result) {
  return result ? "no error" : result.error().message;
}

}  // namespace

TEST_CASE("a compressed file is what was compressed, in one piece or several") {
  for (const std::size_t size : {0, 1, 65535, 65536, 1000000}) {
    const std::string bytes = some_bytes(size), zeros(size, '\0');
    CHECK(plain(bytes) == bytes);
    for (const auto compress : kAll) {
      CHECK(plain(compress(bytes)) == bytes);
      CHECK(plain(compress(zeros)) == zeros);
      CHECK(plain(compress("") + compress(bytes) + compress("") + compress("end")) == bytes + "end");
    }
  }
  CHECK(plain(gzip("a") + std::string(100000, '\0')) == "a");
  CHECK(plain("\x1f") == "\x1f");
}

TEST_CASE("a cut off or changed file is an error, wherever it is cut") {
  const std::string bytes = some_bytes(300);
  for (const auto compress : kAll) {
    const std::string whole = compress(bytes);
    for (std::size_t size = 6; size < whole.size(); ++size) CHECK(plain(whole.substr(0, size)) == "its end is missing");
  }
  std::string changed = gzip(bytes);
  changed[changed.size() - 6] ^= 1;
  CHECK(plain(changed) == "its gzip is broken: incorrect data check");
  changed = xz(bytes);
  changed[100] ^= 1;
  CHECK(plain(changed) == "its xz is broken");
  CHECK(plain(zstd(bytes) + "garbage") == "its zstd is broken: Unknown frame descriptor");
}

TEST_CASE("what comes out is bounded, and so is what nothing comes out of") {
  const std::string bytes(1 << 20, 'x');
  for (const auto compress : kAll) {
    CHECK(plain(compress(bytes), 1 << 20) == bytes);
    CHECK(plain(compress(bytes), (1 << 20) - 1) == "it is larger than benchsand unpacks");
  }
  CHECK(plain(bytes, (1 << 20) - 1) == "it is larger than benchsand unpacks");
  const std::string empty = gzip("");
  std::string many;
  while (many.size() <= 64 << 20) many += empty;
  CHECK(plain(many + gzip("end")) == "it has more than 64 MiB that come to nothing");
}

TEST_CASE("one compression is taken off an archive, and no more") {
  const std::string tar = tar_of({{"a", '0', "1"}});
  for (const auto compress : kAll) {
    CHECK(first_entry(compress(tar)) == "a");
    for (const auto again : kAll) CHECK(first_entry(again(compress(tar))) == "read T: Unrecognized archive format");
  }
  const TempFolder folder;
  const auto opened = [&](const std::string& bytes) {
    folder.write("image.tar", bytes);
    return error_of(ImageSource::open({ImageForm::oci, folder.path("image.tar"), "", ""}));
  };
  const std::string once = opened(gzip(tar));
  CHECK(once.find("it has no file \"oci-layout\"") != std::string::npos);
  CHECK(opened(gzip(gzip(tar))).ends_with(": Unrecognized archive format"));
}
