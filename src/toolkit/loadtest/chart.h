// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG.
#ifndef BELAY_TOOLKIT_LOADTEST_CHART_H_
#define BELAY_TOOLKIT_LOADTEST_CHART_H_

#include <string>
#include <utility>
#include <vector>

namespace belay::loadtest {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct Chart {
  std::string title;
  std::string x_name;
  std::string y_name;
  std::vector<ChartLine> lines;
  bool x_is_log = false;
  bool steps = false;  // a distribution: level between points
  double y_max = 0;    // 0 = from the points
};

// An <svg> element with axes, marks and a legend; classes l0, l1, ... give the
// lines their colours. Texts are escaped.
std::string ChartToSvg(const Chart& chart);

}  // namespace belay::loadtest

#endif  // BELAY_TOOLKIT_LOADTEST_CHART_H_
