// SPDX-License-Identifier: Apache-2.0
// Simulated time. Each stream has a clock that its tasks move on, each thread
// of the program one that waiting moves on; all count nanoseconds from the
// start of the process. A task begins when its stream is free, when it was
// queued and when what it waits for is done, and takes
//
//   operator, fill   launch + max(bytes / memory bandwidth, flops / peak)
//   copy to or from the host   latency + jitter + bytes / link bandwidth
//   callback         what it really took
//
// with the figures of the profile. The jitter comes from (seed, stream, number
// of the copy in it), so that a program that does the same gets the same times.
#ifndef BELAY_CANNSIM_RUNTIME_COUNT_CLOCK_H_
#define BELAY_CANNSIM_RUNTIME_COUNT_CLOCK_H_

#include <cstdint>

#include "cannsim/config/profile.h"
#include "cannsim/runtime/queue/task.h"

namespace cannsim {

// The calling thread's clock. A new thread begins where the latest wait of any
// thread ended.
double HostNow();
// Something that the thread waited for was done at `ns`.
void HostReach(double ns);

// What a task takes on a chip that nothing slows down. `draw` picks the jitter.
double CostNs(const Task& task, const Profile& profile, uint64_t draw);

// Does the work and moves `*run.now_ns` on. The task's result.
int RunTimed(Task& task, const TaskRun& run);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_COUNT_CLOCK_H_
