#include "oci/tar_header.h"

#include <algorithm>

namespace benchsand {

namespace {

constexpr std::size_t kBlock = 512, kName = 100;

// Octal digits and a NUL; what has more is written in base 256, as GNU does.
std::string number(std::uint64_t value, std::size_t width) {
  std::string digits(width - 1, '0');
  std::uint64_t rest = value;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, rest /= 8)
    *digit = static_cast<char>('0' + rest % 8);
  if (rest == 0) return digits + std::string(1, '\0');
  std::string bytes(width, '\0');
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte, value /= 256) *byte = static_cast<char>(value % 256);
  bytes[0] = static_cast<char>(0x80);
  return bytes;
}

std::string block_of(const TarHeader& header) {
  std::string block(kBlock, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { block.replace(at, text.size(), text); };
  put(0, header.name.substr(0, kName));
  put(100, number(header.mode & 07777, 8));
  put(108, number(header.uid, 8));
  put(116, number(header.gid, 8));
  put(124, number(header.size, 12));
  put(136, number(static_cast<std::uint64_t>(std::max<std::int64_t>(header.time, 0)), 12));
  put(148, std::string(8, ' '));
  block[156] = header.type;
  put(157, header.link.substr(0, kName));
  put(257, "ustar  ");  // GNU's magic, with a NUL behind it
  std::uint64_t sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, number(sum, 7) + " ");
  return block;
}

// An entry before the entry, whose content is the name that does not fit.
std::string long_name(char type, const std::string& name) {
  const std::string content = name + std::string(1, '\0');
  TarHeader header;
  header.name = "././@LongLink";
  header.type = type;
  header.size = content.size();
  return block_of(header) + content + tar_padding(content.size());
}

}  // namespace

std::string tar_header(const TarHeader& header) {
  TarHeader written = header;
  if (header.type == '5') written.name += "/";
  std::string text;
  if (header.link.size() > kName) text += long_name('K', header.link);
  if (written.name.size() > kName) text += long_name('L', written.name);
  return text + block_of(written);
}

std::string tar_padding(std::uint64_t size) {
  return std::string(static_cast<std::size_t>((kBlock - size % kBlock) % kBlock), '\0');
}

std::string tar_end() {
  return std::string(2 * kBlock, '\0');
}

}  // namespace benchsand
