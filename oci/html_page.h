// A record as one page to show around: no script, nothing loaded from anywhere, well-formed XML.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace benchsand {

// Text as the content of an element or of a quoted attribute. What a reader would not see, or could be misled by, becomes \xNN,
// and so do bytes that are no UTF-8.
std::string html_text(const std::string& text);

// Throws on what is no record of ours.
std::string html_page(const nlohmann::json& record);

}  // namespace benchsand
