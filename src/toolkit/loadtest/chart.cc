// SPDX-License-Identifier: Apache-2.0
#include "toolkit/loadtest/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "diag/markup.h"

namespace belay::loadtest {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 300;
constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kTop = 16;
constexpr double kBottom = 64;

// 1, 2 or 5 times a power of ten, at least `value`.
double RoundUp(double value) {
  if (!(value > 0)) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (value <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

class Plot {
 public:
  explicit Plot(const Chart& chart) : chart_(chart) {
    double x_min = INFINITY;
    double x_max = -INFINITY;
    double y_max = 0;
    for (const ChartLine& line : chart.lines) {
      for (const auto& [x, y] : line.points) {
        x_min = std::min(x_min, x);
        x_max = std::max(x_max, x);
        y_max = std::max(y_max, y);
      }
    }
    if (!(x_min <= x_max)) x_min = x_max = 1;
    y_step_ = RoundUp((chart.y_max > 0 ? chart.y_max : y_max) / 4);
    y_max_ = chart.y_max > 0
                 ? chart.y_max
                 : y_step_ * std::max(1.0, std::ceil(y_max / y_step_ - 1e-9));
    x_min_ = chart.x_is_log ? x_min : 0;
    x_max_ = x_max > x_min_ ? x_max : x_min_ + 1;
  }

  std::string Draw() {
    out_ = fmt::format(
        "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n",
        kWidth, kHeight, diag::EscapeMarkup(chart_.title));
    DrawGrid();
    for (size_t i = 0; i < chart_.lines.size(); ++i) {
      DrawLine(chart_.lines[i], i);
    }
    DrawLegend();
    return out_ + "</svg>\n";
  }

 private:
  double X(double x) const {
    const double share = chart_.x_is_log
                             ? std::log(x / x_min_) / std::log(x_max_ / x_min_)
                             : (x - x_min_) / (x_max_ - x_min_);
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double Y(double y) const {
    return kHeight - kBottom -
           std::clamp(y / y_max_, 0.0, 1.0) * (kHeight - kTop - kBottom);
  }

  template <typename... Args>
  void Add(fmt::format_string<Args...> form, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), form, std::forward<Args>(args)...);
  }

  void DrawGrid() {
    for (double y = 0; y <= y_max_ * (1 + 1e-9); y += y_step_) {
      Add("<path class=\"grid\" d=\"M{:.1f},{:.1f}H{:.1f}\"/>"
          "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{:.4g}</text>\n",
          kLeft, Y(y), kWidth - kRight, kLeft - 8, Y(y) + 4, y);
    }
    std::vector<double> marks;
    if (chart_.x_is_log) {
      for (const auto& point : chart_.lines.front().points) {
        marks.push_back(point.first);
      }
    } else {
      const double step = RoundUp(x_max_ / 5);
      for (double x = 0; x <= x_max_ * (1 + 1e-9); x += step) {
        marks.push_back(x);
      }
    }
    for (const double x : marks) {
      Add("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"middle\">{:.4g}</text>\n",
          X(x), kHeight - kBottom + 18, x);
    }
    Add("<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>\n",
        kWidth - kRight, kHeight - kBottom + 36,
        diag::EscapeMarkup(chart_.x_name));
    Add("<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kLeft + 4,
        kTop - 4, diag::EscapeMarkup(chart_.y_name));
  }

  void DrawLine(const ChartLine& line, size_t index) {
    std::string path;
    for (size_t i = 0; i < line.points.size(); ++i) {
      const auto [x, y] = line.points[i];
      if (i == 0) {
        path += fmt::format("M{:.1f},{:.1f}", X(x), Y(y));
      } else if (chart_.steps) {
        path += fmt::format("H{:.1f}V{:.1f}", X(x), Y(y));
      } else {
        path += fmt::format("L{:.1f},{:.1f}", X(x), Y(y));
      }
    }
    Add("<path class=\"line l{}\" d=\"{}\"/>\n", index % 6, path);
    if (chart_.steps) return;
    for (const auto& [x, y] : line.points) {
      Add("<circle class=\"dot l{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\">"
          "<title>{}: {:.4g}</title></circle>\n",
          index % 6, X(x), Y(y), diag::EscapeMarkup(line.name), y);
    }
  }

  void DrawLegend() {
    double x = kLeft;
    const double y = kHeight - 10;
    for (size_t i = 0; i < chart_.lines.size(); ++i) {
      const std::string& name = chart_.lines[i].name;
      Add("<path class=\"line l{}\" d=\"M{:.1f},{:.1f}h18\"/>"
          "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          i % 6, x, y - 4, x + 24, y, diag::EscapeMarkup(name));
      x += 44 + 7.0 * static_cast<double>(name.size());
    }
  }

  const Chart& chart_;
  double x_min_ = 0, x_max_ = 1, y_max_ = 1, y_step_ = 1;
  std::string out_;
};

}  // namespace

std::string ChartToSvg(const Chart& chart) { return Plot(chart).Draw(); }

}  // namespace belay::loadtest
