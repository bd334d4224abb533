// What a file holds that may be compressed with gzip, xz or zstd: one compression is taken off and no more, for content that is
// compressed again can be ever so long while it seems short. What that comes to is bounded, and so is how much may hold nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "shim/sys.h"

namespace benchsand {

class Decompressor {
 public:
  struct Codec;  // one stream after the other

  // From where the file stands. More than `most` plain bytes are refused. `seen` is shown what is read of the file.
  using Seen = std::function<void(std::string_view)>;
  Decompressor(const Fd& file, std::uint64_t most, Seen seen = {});
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor();

  // The next plain bytes, valid until the next call; none at the end, when the whole file is read. Errors say what is wrong, and
  // not with what.
  Result<std::string_view> read();

 private:
  Result<void> take_more();
  Result<std::string_view> counted(std::string_view plain);

  const Fd& file_;
  std::uint64_t left_, silent_ = 0;  // of plain bytes; of the file's that came to none
  Seen seen_;
  std::string_view in_;
  bool begun_ = false, file_ended_ = false;
  std::unique_ptr<Codec> codec_;  // null: it is not compressed
  std::vector<char> read_, out_;
};

// Whether a file that begins so is compressed.
bool is_compressed(std::string_view start);

}  // namespace benchsand
