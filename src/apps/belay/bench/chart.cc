// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/bench/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "diag/markup.h"

namespace belay::apps {
namespace {

// In user units of the picture.
constexpr double kWidth = 720;
constexpr double kHeight = 300;
constexpr double kLeft = 64;
constexpr double kRight = 130;  // the legend
constexpr double kTop = 12;
constexpr double kBottom = 44;
constexpr double kLogFactor = 8;

// Told apart by people who see red and green alike, too (after Okabe and Ito).
constexpr std::array<const char*, 6> kColours = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

class Scale {
 public:
  explicit Scale(const Chart& chart) {
    for (const ChartLine& line : chart.lines) {
      for (const ChartPoint& p : line.points) {
        xs_.insert(p.x);
        most_ = std::max({most_, p.y, p.high});
      }
    }
    // A logarithm has no 0: log2(1 + x) lies close to it from 1 on.
    const double least = std::max(1.0, *xs_.begin());
    log_ = *xs_.rbegin() > kLogFactor * least;
    ticks_ = TicksTo(most_ > 0 ? most_ : 1);
  }

  const std::set<double>& xs() const { return xs_; }
  const std::vector<double>& ticks() const { return ticks_; }

  double x(double value) const {
    const double begin = On(*xs_.begin());
    const double span = On(*xs_.rbegin()) - begin;
    const double share = span > 0 ? (On(value) - begin) / span : 0.5;
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom -
           value / ticks_.back() * (kHeight - kTop - kBottom);
  }

 private:
  double On(double value) const { return log_ ? std::log2(1 + value) : value; }

  std::set<double> xs_;
  double most_ = 0;
  bool log_ = false;
  std::vector<double> ticks_;
};

std::string Axes(const Chart& chart, const Scale& scale) {
  std::string svg;
  for (const double tick : scale.ticks()) {
    const double y = scale.y(tick);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" "
        "y2=\"{:.1f}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{:g}</text>\n",
        kLeft, kWidth - kRight, y, y, kLeft - 6, y + 4, tick);
  }
  double last = -std::numeric_limits<double>::infinity();
  for (const double value : scale.xs()) {
    const double x = scale.x(value);
    if (x - last < 40) continue;  // labels that would touch
    last = x;
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>\n",
        x, kHeight - kBottom + 18, value);
  }
  svg += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
      (kLeft + kWidth - kRight) / 2, kHeight - 6,
      diag::EscapeMarkup(chart.x_label));
  svg += fmt::format(
      "<text transform=\"translate(14 {:.1f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      (kTop + kHeight - kBottom) / 2, diag::EscapeMarkup(chart.y_label));
  return svg;
}

std::string Line(const ChartLine& line, size_t index, const Scale& scale) {
  std::vector<ChartPoint> points = line.points;
  std::sort(points.begin(), points.end(),
            [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  const char* colour = kColours[index % kColours.size()];
  std::string path;
  std::string marks;
  for (const ChartPoint& p : points) {
    const double x = scale.x(p.x);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x,
                        scale.y(p.y));
    marks += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" "
        "stroke=\"{3}\"/><circle cx=\"{0:.1f}\" cy=\"{4:.1f}\" r=\"3\" "
        "fill=\"{3}\"><title>{5:g}: {6:.1f} ({7:.1f} - {8:.1f})</title>"
        "</circle>\n",
        x, scale.y(p.low), scale.y(p.high), colour, scale.y(p.y), p.x, p.y,
        p.low, p.high);
  }
  std::string svg = fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n{}",
      path, colour, marks);
  if (line.name.empty()) return svg;
  const double y = kTop + 14 + 18 * static_cast<double>(index);
  return svg + fmt::format(
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" "
                   "fill=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                   kWidth - kRight + 12, y - 9, colour, kWidth - kRight + 28, y,
                   diag::EscapeMarkup(line.name));
}

}  // namespace

std::vector<double> TicksTo(double most) {
  constexpr int kMostSteps = 6;
  double step = std::pow(10, std::floor(std::log10(most)) - 1);
  for (const double factor : {2.0, 2.5, 2.0, 2.0, 2.5, 2.0}) {
    if (most <= kMostSteps * step) break;
    step *= factor;  // 1, 2, 5, 10, 20, 50
  }
  std::vector<double> ticks = {0};
  while (ticks.back() < most) {
    ticks.push_back(step * static_cast<double>(ticks.size()));
  }
  return ticks;
}

std::string ToSvg(const Chart& chart) {
  const bool drawn =
      std::any_of(chart.lines.begin(), chart.lines.end(),
                  [](const ChartLine& line) { return line.points.size() > 1; });
  if (!drawn) return "";
  const Scale scale(chart);
  std::string svg = fmt::format(
      "<h2>{}</h2>\n<svg viewBox=\"0 0 {:g} {:g}\" role=\"img\" "
      "aria-label=\"{}\">\n",
      diag::EscapeMarkup(chart.title), kWidth, kHeight,
      diag::EscapeMarkup(chart.title));
  svg += Axes(chart, scale);
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    svg += Line(chart.lines[i], i, scale);
  }
  return svg + "</svg>\n";
}

}  // namespace belay::apps
