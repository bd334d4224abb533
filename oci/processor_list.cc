#include "oci/processor_list.h"

#include <set>
#include <string_view>

#include "oci/kernel_text.h"

namespace benchsand {

namespace {

std::optional<std::uint64_t> processor(std::string_view word) {
  const auto value = kernel_text::number(word, "processors", word);
  if (!value || *value >= kMostProcessors) return std::nullopt;
  return *value;
}

}  // namespace

std::optional<ProcessorList> parse_processor_list(const std::string& text) {
  std::set<std::uint64_t> all;
  for (const std::string_view part : kernel_text::split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = processor(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : processor(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (std::uint64_t i = *first; i <= *last; ++i) all.insert(i);
  }
  ProcessorList list;
  list.count = all.size();
  for (auto at = all.begin(); at != all.end();) {
    const std::uint64_t first = *at;
    std::uint64_t last = first;
    while (++at != all.end() && *at == last + 1) ++last;
    list.text += (list.text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) list.text += "-" + std::to_string(last);
  }
  return list;
}

}  // namespace benchsand
