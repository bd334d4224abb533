#include "oci/svg_chart.h"

#include <algorithm>

namespace benchsand {

namespace {

// In tenths of the drawing's units, so that integers are enough.
constexpr std::uint64_t kLeft = 560, kTop = 140, kWidth = 5700, kHeight = 1300;
constexpr std::size_t kFewSamples = 40;

std::string tenths(std::uint64_t value) {
  return std::to_string(value / 10) + (value % 10 ? "." + std::to_string(value % 10) : "");
}

// `value` of `whole`, stretched to `length`, without a product that could overflow.
std::uint64_t scaled(std::uint64_t value, std::uint64_t whole, std::uint64_t length) {
  const double part = std::min(static_cast<double>(value) / static_cast<double>(whole), 1.0);
  return static_cast<std::uint64_t>(part * static_cast<double>(length) + 0.5);
}

std::string at(std::uint64_t x, std::uint64_t y) {
  return tenths(x) + " " + tenths(y);
}

std::string line(const char* type, std::uint64_t y) {
  return std::string("<line class=\"") + type + "\" x1=\"" + tenths(kLeft) + "\" y1=\"" + tenths(y) + "\" x2=\"" +
         tenths(kLeft + kWidth) + "\" y2=\"" + tenths(y) + "\"/>";
}

std::string label(std::uint64_t x, std::uint64_t y, const char* anchor, const std::string& text) {
  return "<text x=\"" + tenths(x) + "\" y=\"" + tenths(y) + "\" text-anchor=\"" + anchor + "\">" + text + "</text>";
}

// The class that gives the colour.
std::string kind(const Series& series) {
  if (series.name == "CPU time") return "cpu";
  return series.name == "refused calls" ? "refused" : series.name;
}

std::string curve(const Series& series, std::uint64_t end_us) {
  std::string points, dots;
  std::uint64_t first = kLeft, last = kLeft;
  for (const auto& [when, value] : series.points) {
    const std::uint64_t x = kLeft + scaled(when, end_us, kWidth);
    const std::uint64_t y = kTop + kHeight - scaled(value, series.top, kHeight);
    if (points.empty()) first = x;
    last = x;
    points += (points.empty() ? "M" : " L") + at(x, y);
    if (series.points.size() <= kFewSamples)
      dots += "<circle cx=\"" + tenths(x) + "\" cy=\"" + tenths(y) + "\" r=\"2\"/>";
  }
  const std::string floor = at(last, kTop + kHeight) + " L" + at(first, kTop + kHeight) + " Z";
  return "<path class=\"area\" d=\"" + points + " L" + floor + "\"/><path class=\"curve\" d=\"" + points + "\"/>" +
         dots;
}

std::string limit_line(const Series& series) {
  if (!series.limit || !series.limit_on_scale) return "";
  return line("limit", kTop + kHeight - scaled(*series.limit, series.top, kHeight));
}

}  // namespace

std::string svg_figure(const Series& series, std::uint64_t end_us) {
  std::uint64_t most = 0;
  for (const auto& [when, value] : series.points) most = std::max(most, value);
  std::string caption = "sampled up to " + rough(most, series.unit);
  if (series.limit)
    caption +=
        ", limit " + rough(*series.limit, series.unit) + (series.limit_on_scale ? " (dashed)" : " (off the scale)");
  const std::uint64_t bottom = kTop + kHeight, right = kLeft + kWidth;
  return "<figure><figcaption><strong>" + series.name + "</strong> <span>" + caption + "</span></figcaption>\n" +
         "<svg class=\"" + kind(series) + "\" viewBox=\"0 0 640 170\" role=\"img\" aria-label=\"" + series.name + ": " +
         caption + "\">" + line("grid", kTop) + line("grid", kTop + kHeight / 2) + line("grid", bottom) +
         label(kLeft - 60, kTop + 40, "end", rough(series.top, series.unit)) + label(kLeft - 60, bottom, "end", "0") +
         label(kLeft, bottom + 170, "start", "0") +
         label(right, bottom + 170, "end", rough(end_us, Unit::duration_us)) + curve(series, end_us) +
         limit_line(series) + "</svg></figure>\n";
}

}  // namespace benchsand
