#include "shim/tar_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>

#include "oci/sha256.h"
#include "shim/decompressor.h"

namespace benchsand {

std::string archive_problem(const std::string& tried, archive* a) {
  return tried + ": " + (archive_error_string(a) ? archive_error_string(a) : "unknown archive error");
}

la_ssize_t hand_on(archive* a, const Result<std::string_view>& bytes, const void** block) {
  if (!bytes) archive_set_error(a, EIO, "%s", bytes.error().message.c_str());
  if (!bytes) return ARCHIVE_FATAL;
  *block = bytes->data();
  return static_cast<la_ssize_t>(bytes->size());
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

// Both forms are hashed on their way into the archive.
struct TarReader::Parts {
  std::string what;
  Sha256 file_digest{}, plain_digest{};
  Decompressor plain;
  Archive tar;

  Parts(const Fd& opened, std::string name, std::uint64_t most)
      : what(std::move(name)), plain(opened, most, [this](std::string_view bytes) { file_digest.update(bytes); }) {}

  Result<std::string_view> read_plain() {
    const auto bytes = TRY(plain.read());
    plain_digest.update(bytes);
    return bytes;
  }

  static la_ssize_t read_block(archive* a, void* self, const void** block) {
    return hand_on(a, static_cast<Parts*>(self)->read_plain(), block);
  }

  std::unexpected<Error> broken(archive* a) const { return usage(archive_problem("read " + what, a)); }

  Result<void> open() {
    tar.reset(archive_read_new());
    archive_read_support_format_tar(tar.get());
    if (archive_read_open(tar.get(), this, nullptr, read_block, nullptr) != ARCHIVE_OK) return broken(tar.get());
    return {};
  }

  Result<void> drain() {
    for (;;) {
      const auto bytes = read_plain();
      if (!bytes) return usage("read " + what + ": " + bytes.error().message);
      if (bytes->empty()) return {};
    }
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
