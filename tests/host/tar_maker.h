// Tar archives with entries that no tar program would make.
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace benchsand::support {

struct TarEntry {
  std::string name;
  char type = '0';  // 0 file, 1 hard link, 2 symbolic link, 3 and 4 devices, 5 directory, 6 FIFO
  std::string content{};
  std::string link{};
  int mode = 0755;
  std::vector<std::pair<std::string, std::string>> pax{};  // "path", "SCHILY.xattr.user.x", …
};

inline std::string tar_block(std::string bytes) {
  bytes.resize((bytes.size() + 511) / 512 * 512);
  return bytes;
}

inline std::string tar_header(const TarEntry& entry) {
  std::string block(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { block.replace(at, text.size(), text); };
  const auto octal = [](unsigned long long value, int width) {
    char text[32];
    std::snprintf(text, sizeof text, "%0*llo", width, value);
    return std::string(text);
  };
  put(0, entry.name.substr(0, 100));
  put(100, octal(static_cast<unsigned>(entry.mode), 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(entry.content.size(), 11));
  put(136, octal(1'000'000'000, 11));
  put(148, "        ");
  block[156] = entry.type;
  put(157, entry.link.substr(0, 100));
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(329, octal(1, 7));
  put(337, octal(3, 7));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return block;
}

inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) length = std::to_string(length).size() + rest.size();
  return std::to_string(length) + rest;
}

inline std::string tar_of(const std::vector<TarEntry>& entries) {
  std::string bytes;
  for (const auto& entry : entries) {
    if (!entry.pax.empty()) {
      std::string records;
      for (const auto& [key, value] : entry.pax) records += pax_record(key, value);
      bytes += tar_header({"pax", 'x', records}) + tar_block(records);
    }
    bytes += tar_header(entry) + tar_block(entry.content);
  }
  return bytes + std::string(1024, '\0');
}

}  // namespace benchsand::support
