#include "oci/json_path.h"

#include <algorithm>

namespace benchsand {

using nlohmann::json;

const json& json_at(const json& document, const std::string& path) {
  static const json absent;
  const json* found = &document;
  for (std::size_t start = 1; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const auto next = found->is_object() ? found->find(path.substr(start, end - start)) : found->end();
    if (next == found->end()) return absent;
    found = &*next;
    start = end + 1;
  }
  return *found;
}

}  // namespace benchsand
