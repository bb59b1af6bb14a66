// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_TUNE_MEASURE_H_
#define BELAY_TOOLKIT_TUNE_MEASURE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"

namespace belay::tune {

// Copies memory on `n_threads` threads, `bytes` on each, `n_runs` times; GB/s
// of each run (1e9 bytes, read and written counted once each). SYS-003 when
// there is no memory for it.
StatusOr<std::vector<double>> MeasureBandwidth(int n_runs, int n_threads,
                                               size_t bytes);

// Starts the command `n_runs` times, its output on stderr; how often a second
// it would run, of each run. TUNE-004 when it cannot be started or fails.
StatusOr<std::vector<double>> MeasureCommand(
    const std::vector<std::string>& command, int n_runs);

}  // namespace belay::tune

#endif  // BELAY_TOOLKIT_TUNE_MEASURE_H_
