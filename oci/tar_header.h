// The head of an entry of a tar archive, in GNU format: a name may have any bytes and any length. libarchive's writer brings every
// format and their libraries along, which a static program cannot have.
#pragma once

#include <cstdint>
#include <string>

namespace benchsand {

struct TarHeader {
  std::string name;  // of a directory without the slash
  char type = '0';   // '0' file, '1' hard link, '2' symbolic link, '5' directory
  std::string link;  // of both kinds
  std::uint32_t mode = 0, uid = 0, gid = 0;
  std::uint64_t size = 0;
  std::int64_t time = 0;
};

// Blocks of 512 bytes. The content follows, filled up to whole blocks with tar_padding.
std::string tar_header(const TarHeader& header);
std::string tar_padding(std::uint64_t size);
std::string tar_end();

}  // namespace benchsand
