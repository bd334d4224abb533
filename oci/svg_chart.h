// One line of a timeline as an inline SVG figure of html_page.
#pragma once

#include <string>

#include "oci/series.h"

namespace benchsand {

std::string svg_figure(const Series& series, std::uint64_t end_us);

}  // namespace benchsand
