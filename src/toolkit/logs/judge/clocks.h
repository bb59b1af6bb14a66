// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_LOGS_JUDGE_CLOCKS_H_
#define BELAY_TOOLKIT_LOGS_JUDGE_CLOCKS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "toolkit/logs/judge/event.h"

namespace belay::logs {

struct ClockOffset {
  int64_t us = 0;    // to take away from this file's times
  int n_common = 0;  // lines that it was found from; 0: not corrected
};

// By how much the clock of each file is wrong, as far as lines that several
// files have in common can tell: all ranks say "step 100 done" at about the
// same time. A file is corrected only when at least 5 common lines agree to a
// second, by 2 s or more against the middle of all files; so a rank that only
// started late is left alone unless all its lines are late.
std::vector<ClockOffset> FindClockOffsets(std::span<const FileFacts> files);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_JUDGE_CLOCKS_H_
