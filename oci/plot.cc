#include "oci/plot.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "oci/series.h"

namespace benchsand {

namespace {

constexpr std::size_t kLeast = 40, kMost = 400, kLabel = 9, kRows = 4, kAsciiRows = 6;

// Dots in a grid; a braille character shows 2 x 4 of them, an ASCII one a single dot.
struct Canvas {
  std::size_t columns, rows, dots_across, dots_up;
  std::vector<bool> set;
  std::optional<std::size_t> limit;  // height of its line
  std::size_t width() const { return columns * dots_across; }
  std::size_t height() const { return rows * dots_up; }
  // `y` counts from below.
  void dot(std::size_t x, std::size_t y) { set[y * width() + x] = true; }
  bool at(std::size_t x, std::size_t y) const { return set[y * width() + x]; }
};

Canvas canvas_of(std::size_t columns, bool ascii) {
  Canvas canvas{columns, ascii ? kAsciiRows : kRows, ascii ? 1u : 2u, ascii ? 1u : 4u, {}, {}};
  canvas.set.resize(canvas.width() * canvas.height());
  return canvas;
}

// 0 for 0, at least 1 for anything, `height` for the top. No product that could overflow.
std::size_t dots_for(std::uint64_t value, std::uint64_t top, std::size_t height) {
  if (value == 0) return 0;
  const double part = std::min(static_cast<double>(value) / static_cast<double>(top), 1.0);
  return std::clamp(static_cast<std::size_t>(part * static_cast<double>(height) + 0.5), std::size_t{1}, height);
}

// The largest value sampled in each column's time; between samples the last one holds. Nothing before the first.
std::vector<std::optional<std::uint64_t>> values_by_column(const Series& series, std::uint64_t end_us,
                                                           std::size_t width) {
  std::vector<std::optional<std::uint64_t>> values(width);
  for (const auto& [at, value] : series.points) {
    const double part = static_cast<double>(at) / static_cast<double>(end_us);
    const std::size_t x = std::min(static_cast<std::size_t>(part * static_cast<double>(width)), width - 1);
    if (!values[x] || *values[x] < value) values[x] = value;
  }
  for (std::size_t x = 1; x < width; ++x)
    if (!values[x]) values[x] = values[x - 1];
  return values;
}

void draw(const Series& series, std::uint64_t end_us, Canvas& canvas) {
  const auto values = values_by_column(series, end_us, canvas.width());
  for (std::size_t x = 0; x < canvas.width(); ++x) {
    const std::size_t dots = values[x] ? dots_for(*values[x], series.top, canvas.height()) : 0;
    for (std::size_t y = 0; y < dots; ++y) canvas.dot(x, y);
  }
  if (!series.limit_on_scale) return;
  canvas.limit = dots_for(std::max<std::uint64_t>(*series.limit, 1), series.top, canvas.height()) - 1;
  for (std::size_t x = 0; canvas.dots_across > 1 && x < canvas.width(); x += 2) canvas.dot(x, *canvas.limit);
}

std::string braille(unsigned dots) {
  const unsigned point = 0x2800 + dots;
  return {static_cast<char>(0xE0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 0x3F)),
          static_cast<char>(0x80 | (point & 0x3F))};
}

std::string cell(const Canvas& canvas, std::size_t column, std::size_t row_from_below) {
  if (canvas.dots_across == 1)
    return canvas.at(column, row_from_below) ? "#" : canvas.limit == row_from_below && column % 2 == 0 ? "-" : " ";
  // Bit numbers of the eight dots, left column from above, then the right one.
  static constexpr unsigned kBits[2][4] = {{0, 1, 2, 6}, {3, 4, 5, 7}};
  unsigned dots = 0;
  for (std::size_t x = 0; x < 2; ++x)
    for (std::size_t y = 0; y < 4; ++y)
      if (canvas.at(column * 2 + x, row_from_below * 4 + 3 - y)) dots |= 1U << kBits[x][y];
  return dots == 0 ? " " : braille(dots);
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string title(const Series& series) {
  std::uint64_t most = 0;
  for (const auto& [at, value] : series.points) most = std::max(most, value);
  std::string text = series.name + ", sampled up to " + rough(most, series.unit);
  if (series.limit)
    text += " (limit " + rough(*series.limit, series.unit) + (series.limit_on_scale ? ", dotted)" : ", off the scale)");
  return text;
}

std::string chart(const Series& series, std::uint64_t end_us, std::size_t width, bool ascii) {
  Canvas canvas = canvas_of(width - kLabel - 2, ascii);
  draw(series, end_us, canvas);
  std::string text = std::string(kLabel + 2, ' ') + title(series) + "\n";
  for (std::size_t row = canvas.rows; row-- > 0;) {
    const std::string label = row + 1 == canvas.rows ? rough(series.top, series.unit) : row == 0 ? "0" : "";
    std::string line = right(label, kLabel) + (ascii ? " |" : label.empty() ? " \u2502" : " \u2524");
    for (std::size_t column = 0; column < canvas.columns; ++column) line += cell(canvas, column, row);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string axis(std::uint64_t end_us, std::size_t width, bool ascii) {
  const std::size_t columns = width - kLabel - 2;
  std::string line = std::string(kLabel, ' ') + (ascii ? " +" : " \u2514");
  for (std::size_t i = 0; i < columns; ++i) line += ascii ? "-" : "\u2500";
  return line + "\n" + std::string(kLabel + 2, ' ') + "0" + right(rough(end_us, Unit::duration_us), columns - 1) + "\n";
}

}  // namespace

std::string plot(const nlohmann::json& record, const PlotStyle& style) {
  const auto all = timeline_series(record);
  if (all.empty()) return why_no_samples(record) + "\n";
  const std::size_t width = std::clamp(style.width, kLeast, kMost);
  const std::uint64_t end_us = timeline_end_us(record);
  std::string text;
  for (const auto& series : all) text += chart(series, end_us, width, style.ascii);
  return text + axis(end_us, width, style.ascii);
}

}  // namespace benchsand
