// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_LOADTEST_SUMMARY_H_
#define BELAY_TOOLKIT_LOADTEST_SUMMARY_H_

#include <vector>

#include "toolkit/loadtest/plan.h"

namespace belay::loadtest {

// Nearest-rank percentiles: each is a value that was measured.
Percentiles PercentilesOf(std::vector<double> values);

// Fills the figures of a level from its samples.
void Summarize(const Plan& plan, LevelResult* level);

// What is wrong, as LOAD-010 and further, most serious first.
std::vector<Status> FindingsOf(const Plan& plan,
                               const std::vector<LevelResult>& levels);

// "4 at once", "2.5/s".
std::string NameOf(const Level& level);

}  // namespace belay::loadtest

#endif  // BELAY_TOOLKIT_LOADTEST_SUMMARY_H_
