// A tar archive, plain or compressed with gzip, xz or zstd, hashed while it is read: the file may change between the look-up of
// its digest and the unpacking, and an image names the digests of both forms.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "shim/sys.h"

namespace benchsand {

struct ArchiveCloser {
  void operator()(archive* a) const { archive_free(a); }
};
using Archive = std::unique_ptr<archive, ArchiveCloser>;

// `tried` and what libarchive says.
std::string archive_problem(const std::string& tried, archive* a);

// For a read callback of libarchive's: the next bytes, which stay valid, or why there are none.
la_ssize_t hand_on(archive* a, const Result<std::string_view>& bytes, const void** block);

class TarReader {
 public:
  // Reads the file from its beginning. `what` is what messages call it: "the rootfs PATH". More than `most` bytes of plain tar are
  // refused.
  static Result<TarReader> open(const Fd& file, std::string what, std::uint64_t most);
  TarReader(TarReader&&) noexcept;
  TarReader& operator=(TarReader&&) noexcept;
  ~TarReader();

  // Null at the end. Kind usage when it is no tar archive, or a broken one.
  Result<archive_entry*> next();
  // The next piece of the entry's content and where it belongs; false at its end.
  struct Piece {
    std::string_view bytes;
    std::uint64_t offset = 0;
  };
  Result<bool> read(Piece& piece);

  // Reads the rest. Lower-case hexadecimal.
  struct Digests {
    std::string file, plain;
  };
  Result<Digests> finish();
  const std::string& what() const;

 private:
  struct Parts;
  explicit TarReader(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace benchsand
