#include "shim/decompressor.h"

#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <span>
#include <string>

namespace benchsand {

namespace {

constexpr std::uint64_t kMostSilent = 64 << 20, kMostXzMemory = 256 << 20;
constexpr std::size_t kPiece = 65536;
constexpr std::string_view kGzip = "\x1f\x8b", kZstd = "\x28\xb5\x2f\xfd", kXz{"\3757zXZ\0", 6};

}  // namespace

struct Decompressor::Codec {
  virtual ~Codec() = default;
  // Takes from `in` and says how much of `out` it has filled; `last`: nothing comes after `in`.
  virtual Result<std::size_t> unpack(std::string_view& in, std::span<char> out, bool last) = 0;
  virtual bool complete() const = 0;  // it may end here
};

namespace {

class Gzip : public Decompressor::Codec {
 public:
  Gzip() { ready_ = ::inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK; }  // 16: with gzip's header and sum
  ~Gzip() override { ::inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  // What stands behind the last member is padding, as gzip takes it.
  Result<std::size_t> unpack(std::string_view& in, std::span<char> out, bool) override {
    if (complete_ && !in.starts_with(kGzip.front())) {
      in = {};
      return 0;
    }
    if (!ready_ || (complete_ && ::inflateReset(&stream_) != Z_OK)) return fault("no memory for gzip");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int done = ::inflate(&stream_, Z_NO_FLUSH);
    if (done != Z_OK && done != Z_STREAM_END && done != Z_BUF_ERROR)
      return usage(std::string("its gzip is broken: ") + (stream_.msg ? stream_.msg : "unknown error"));
    complete_ = done == Z_STREAM_END;
    in.remove_prefix(in.size() - stream_.avail_in);
    return out.size() - stream_.avail_out;
  }
  bool complete() const override { return complete_; }

 private:
  z_stream stream_{};
  bool ready_ = false, complete_ = false;
};

class Xz : public Decompressor::Codec {
 public:
  Xz() { ready_ = ::lzma_stream_decoder(&stream_, kMostXzMemory, LZMA_CONCATENATED) == LZMA_OK; }
  ~Xz() override { ::lzma_end(&stream_); }
  Xz(const Xz&) = delete;
  Xz& operator=(const Xz&) = delete;

  Result<std::size_t> unpack(std::string_view& in, std::span<char> out, bool last) override {
    if (!ready_) return fault("no memory for xz");
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret done = ::lzma_code(&stream_, last ? LZMA_FINISH : LZMA_RUN);
    if (done == LZMA_MEMLIMIT_ERROR)
      return usage("its xz needs more than " + std::to_string(kMostXzMemory >> 20) + " MiB of memory");
    if (done != LZMA_OK && done != LZMA_STREAM_END && done != LZMA_BUF_ERROR) return usage("its xz is broken");
    complete_ = done == LZMA_STREAM_END;
    in.remove_prefix(in.size() - stream_.avail_in);
    return out.size() - stream_.avail_out;
  }
  bool complete() const override { return complete_; }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ready_ = false, complete_ = false;
};

class Zstd : public Decompressor::Codec {
 public:
  Zstd() : stream_(::ZSTD_createDStream()) {}
  ~Zstd() override { ::ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

  Result<std::size_t> unpack(std::string_view& in, std::span<char> out, bool) override {
    if (!stream_) return fault("no memory for zstd");
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t done = ::ZSTD_decompressStream(stream_, &to, &from);
    if (::ZSTD_isError(done)) return usage(std::string("its zstd is broken: ") + ::ZSTD_getErrorName(done));
    complete_ = done == 0;
    in.remove_prefix(from.pos);
    return to.pos;
  }
  bool complete() const override { return complete_; }

 private:
  ZSTD_DStream* stream_;
  bool complete_ = false;
};

std::unique_ptr<Decompressor::Codec> codec_for(std::string_view start) {
  if (start.starts_with(kGzip)) return std::make_unique<Gzip>();
  if (start.starts_with(kXz)) return std::make_unique<Xz>();
  if (start.starts_with(kZstd)) return std::make_unique<Zstd>();
  return nullptr;
}

}  // namespace

bool is_compressed(std::string_view start) {
  return start.starts_with(kGzip) || start.starts_with(kXz) || start.starts_with(kZstd);
}

Decompressor::Decompressor(const Fd& file, std::uint64_t most, Seen seen)
    : file_(file), left_(most), seen_(std::move(seen)), read_(kPiece) {}
Decompressor::~Decompressor() = default;

Result<void> Decompressor::take_more() {
  const ssize_t n = ::read(file_.get(), read_.data(), read_.size());
  if (n < 0) return sys_error("read", "the file", errno);
  in_ = {read_.data(), static_cast<std::size_t>(n)};
  file_ended_ = in_.empty();
  if (seen_) seen_(in_);
  if (!begun_) codec_ = codec_for(in_);
  if (codec_) out_.resize(kPiece);
  begun_ = true;
  return {};
}

Result<std::string_view> Decompressor::counted(std::string_view plain) {
  if (plain.size() > left_) return usage("it is larger than benchsand unpacks");
  left_ -= plain.size();
  silent_ = 0;
  return plain;
}

Result<std::string_view> Decompressor::read() {
  for (;;) {
    if (in_.empty() && !file_ended_) TRY_VOID(take_more());
    if (!codec_) return counted(std::exchange(in_, {}));
    const std::size_t before = in_.size();
    if (before == 0 && codec_->complete()) return std::string_view();
    const std::size_t made = TRY(codec_->unpack(in_, out_, file_ended_));
    if (made > 0) return counted({out_.data(), made});
    if (file_ended_ && codec_->complete()) return std::string_view();
    if (before == in_.size()) return usage(file_ended_ ? "its end is missing" : "it cannot be decompressed");
    silent_ += before - in_.size();
    if (silent_ > kMostSilent)
      return usage("it has more than " + std::to_string(kMostSilent >> 20) + " MiB that come to nothing");
  }
}

}  // namespace benchsand
