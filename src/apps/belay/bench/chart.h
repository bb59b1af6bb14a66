// SPDX-License-Identifier: Apache-2.0
// Curves as SVG, for a page that needs nothing else.
#ifndef BELAY_APPS_BELAY_BENCH_CHART_H_
#define BELAY_APPS_BELAY_BENCH_CHART_H_

#include <string>
#include <vector>

namespace belay::apps {

struct ChartPoint {
  double x = 0;
  double y = 0;
  double low = 0;  // the bar through the point
  double high = 0;
};

struct ChartLine {
  std::string name;  // in the legend; "" leaves it out
  std::vector<ChartPoint> points;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ChartLine> lines;
};

// An <h2> and an <svg>; "" when no line has two points. y starts at 0. x is
// linear, but logarithmic where it spans more than a factor of 8 above 0.
std::string ToSvg(const Chart& chart);

// Round steps from 0 to at least `most`: 1, 2 or 5 times a power of ten, at
// most 6 of them. `most` > 0.
std::vector<double> TicksTo(double most);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_BENCH_CHART_H_
