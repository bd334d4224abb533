#include "oci/text.h"

namespace benchsand {

namespace {

// Of a valid sequence.
unsigned code_point(const std::string& text, std::size_t at, std::size_t length) {
  constexpr unsigned kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  unsigned point = static_cast<unsigned char>(text[at]) & kLeadBits[length];
  for (std::size_t i = 1; i < length; ++i) point = point << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3F);
  return point;
}

struct Range {
  unsigned first, last;
};

// Controls; the soft hyphen; marks and embeddings of direction; zero widths; line and paragraph separators; the byte order mark;
// annotations and the two that are no characters; tags, which hide a text within another.
constexpr Range kHidden[] = {{0, 0x1F},
                             {0x7F, 0x9F},
                             {0xAD, 0xAD},
                             {0x61C, 0x61C},
                             {0x180E, 0x180E},
                             {0x200B, 0x200F},
                             {0x2028, 0x202E},
                             {0x2060, 0x206F},
                             {0xFEFF, 0xFEFF},
                             {0xFFF9, 0xFFFB},
                             {0xFFFE, 0xFFFF},
                             {0xE0000, 0xE007F},
                             // Not controls, but shown as nothing: joiners, fillers, variation selectors.
                             {0x34F, 0x34F},
                             {0x115F, 0x1160},
                             {0x17B4, 0x17B5},
                             {0x180B, 0x180F},
                             {0x3164, 0x3164},
                             {0xFE00, 0xFE0F},
                             {0xFFA0, 0xFFA0},
                             {0xE0100, 0xE01EF}};

}  // namespace

std::size_t utf8_length(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 && lead < 0xF5   ? 4
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                                                           : 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned second = byte(at + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
      (lead == 0xF4 && second > 0x8F))
    return 0;
  return length;
}

std::size_t hidden_length(const std::string& text, std::size_t at) {
  const std::size_t length = utf8_length(text, at);
  if (length == 0) return 0;
  const unsigned point = code_point(text, at, length);
  for (const auto& range : kHidden)
    if (point >= range.first && point <= range.last) return length;
  return 0;
}

std::string escaped_bytes(const std::string& text, std::size_t at, std::size_t length) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  for (std::size_t i = at; i < at + length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return shown;
}

}  // namespace benchsand
