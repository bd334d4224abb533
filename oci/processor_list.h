// Lists of processors as the kernel writes them: "0-1,4".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace benchsand {

struct ProcessorList {
  std::string text;  // in the kernel's own form: ascending, neighbours joined
  std::uint64_t count = 0;
};

// "0,1,4" and "4,0-1" are the same list; nullopt for anything else than numbers and ranges of them.
std::optional<ProcessorList> parse_processor_list(const std::string& text);

inline constexpr std::uint64_t kMostProcessors = 8192;  // what any kernel is built for

}  // namespace benchsand
