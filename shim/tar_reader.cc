#include "shim/tar_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstring>

#include "oci/sha256.h"

namespace benchsand {

std::string archive_problem(const std::string& tried, archive* a) {
  return tried + ": " + (archive_error_string(a) ? archive_error_string(a) : "unknown archive error");
}

namespace {

// Names in a pax archive are UTF-8, and libarchive makes them what the locale says; the C locale has ASCII alone.
class Utf8Names {
 public:
  Utf8Names() : before_(kUtf8 ? ::uselocale(kUtf8) : nullptr) {}
  ~Utf8Names() {
    if (before_) ::uselocale(before_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  static inline const locale_t kUtf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  locale_t before_;
};

}  // namespace

// Two archives, one inside the other: the outer is the compression, whose content is hashed on its way to the inner one.
struct TarReader::Parts {
  const Fd& file;
  std::string what;
  std::uint64_t left;  // bytes of plain tar that may still come
  Sha256 file_digest{}, plain_digest{};
  std::array<char, 65536> file_buffer{}, plain_buffer{};
  Archive compression, tar;

  Parts(const Fd& opened, std::string name, std::uint64_t most) : file(opened), what(std::move(name)), left(most) {}

  static la_ssize_t read_file(archive* a, void* self, const void** block) {
    auto& parts = *static_cast<Parts*>(self);
    const ssize_t n = ::read(parts.file.get(), parts.file_buffer.data(), parts.file_buffer.size());
    if (n < 0) archive_set_error(a, errno, "read: %s", std::strerror(errno));
    if (n > 0) parts.file_digest.update({parts.file_buffer.data(), static_cast<std::size_t>(n)});
    *block = parts.file_buffer.data();
    return n;
  }

  static la_ssize_t read_plain(archive* a, void* self, const void** block) {
    auto& parts = *static_cast<Parts*>(self);
    const la_ssize_t n =
        archive_read_data(parts.compression.get(), parts.plain_buffer.data(), parts.plain_buffer.size());
    const char* said = n < 0 ? archive_error_string(parts.compression.get()) : nullptr;
    if (n < 0) archive_set_error(a, EIO, "%s", said ? said : "unknown archive error");
    if (n < 0) return ARCHIVE_FATAL;
    if (static_cast<std::uint64_t>(n) > parts.left) {
      archive_set_error(a, EFBIG, "it is larger than benchsand unpacks");
      return ARCHIVE_FATAL;
    }
    parts.left -= static_cast<std::uint64_t>(n);
    parts.plain_digest.update({parts.plain_buffer.data(), static_cast<std::size_t>(n)});
    *block = parts.plain_buffer.data();
    return n;
  }

  std::unexpected<Error> broken(archive* a) const { return usage(archive_problem("read " + what, a)); }

  Result<void> open() {
    compression.reset(archive_read_new());
    archive_read_support_format_raw(compression.get());
    archive_read_support_filter_gzip(compression.get());
    archive_read_support_filter_xz(compression.get());
    archive_read_support_filter_zstd(compression.get());
    if (archive_read_open(compression.get(), this, nullptr, read_file, nullptr) != ARCHIVE_OK)
      return broken(compression.get());
    archive_entry* content = nullptr;
    const int read = archive_read_next_header(compression.get(), &content);
    if (read != ARCHIVE_OK) return broken(compression.get());
    tar.reset(archive_read_new());
    archive_read_support_format_tar(tar.get());
    if (archive_read_open(tar.get(), this, nullptr, read_plain, nullptr) != ARCHIVE_OK) return broken(tar.get());
    return {};
  }

  Result<void> drain() {
    for (la_ssize_t n = 1; n != 0;) {
      const void* block = nullptr;
      n = read_plain(tar.get(), this, &block);
      if (n < 0) return broken(tar.get());
    }
    for (la_ssize_t n = 1; n != 0;) {
      const void* block = nullptr;
      n = read_file(compression.get(), this, &block);
      if (n < 0) return broken(compression.get());
    }
    return {};
  }
};

TarReader::TarReader(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TarReader::TarReader(TarReader&&) noexcept = default;
TarReader& TarReader::operator=(TarReader&&) noexcept = default;
TarReader::~TarReader() = default;

Result<TarReader> TarReader::open(const Fd& file, std::string what, std::uint64_t most) {
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return sys_error("lseek", what, errno);
  auto parts = std::make_unique<Parts>(file, std::move(what), most);
  TRY_VOID(parts->open());
  return TarReader(std::move(parts));
}

Result<archive_entry*> TarReader::next() {
  const Utf8Names utf8;
  archive_entry* entry = nullptr;
  const int read = archive_read_next_header(parts_->tar.get(), &entry);
  if (read == ARCHIVE_EOF) return nullptr;
  if (read != ARCHIVE_OK) return parts_->broken(parts_->tar.get());
  return entry;
}

Result<bool> TarReader::read(Piece& piece) {
  const void* block = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  const int read = archive_read_data_block(parts_->tar.get(), &block, &size, &offset);
  if (read == ARCHIVE_EOF) return false;
  if (read != ARCHIVE_OK || offset < 0) return parts_->broken(parts_->tar.get());
  piece = {{static_cast<const char*>(block), size}, static_cast<std::uint64_t>(offset)};
  return true;
}

Result<TarReader::Digests> TarReader::finish() {
  TRY_VOID(parts_->drain());
  return Digests{parts_->file_digest.hex(), parts_->plain_digest.hex()};
}

const std::string& TarReader::what() const {
  return parts_->what;
}

}  // namespace benchsand
