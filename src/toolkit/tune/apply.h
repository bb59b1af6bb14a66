// SPDX-License-Identifier: Apache-2.0
// Applies a plan, keeps what helps, and takes it back.
#ifndef BELAY_TOOLKIT_TUNE_APPLY_H_
#define BELAY_TOOLKIT_TUNE_APPLY_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "toolkit/doctor/machine/machine.h"
#include "toolkit/tune/journal.h"
#include "toolkit/tune/plan.h"
#include "toolkit/tune/writer.h"

namespace belay::tune {

// The host: what it says, and the way to change it.
struct Target {
  doctor::Machine& machine;
  Writer& writer;
};

// Several runs of whatever shall become better, the same number each time;
// higher is better. An error ends the tuning.
using MeasureFn = std::function<StatusOr<std::vector<double>>()>;

struct ApplyOptions {
  std::string record;  // file of the journal
  MeasureFn measure;   // empty: everything that the kernel takes is kept
  // Ends it, with the old state restored (SYS-004); null = cannot be ended.
  const std::atomic<bool>* stop = nullptr;
};

struct Refusal {
  std::string path, why;
};

struct TopicResult {
  Topic topic = Topic::kGovernor;
  size_t n_changed = 0;
  std::vector<double> before, after;  // runs; empty without a measure
  bool is_kept = false;
  std::vector<Refusal> refusals;
};

// Topic by topic: measure, write, read back, measure; a topic is kept if even
// its worst run is better than the best one before it, so that noise keeps
// nothing. The journal is on disk before the first write and is removed when
// nothing was kept. TUNE-001 when an earlier --apply is still in effect,
// TUNE-002 when its record cannot be read, SYS-002 when the record cannot be
// written; in all these cases nothing was changed. After an error of the
// measure everything of this call is taken back.
StatusOr<std::vector<TopicResult>> Apply(const Plan& plan, Target host,
                                         const ApplyOptions& options);

struct RevertResult {
  std::vector<Setting> restored;  // `wanted` is what was there until now
  size_t n_unchanged = 0;         // had their old value already
  bool is_stale = false;  // the machine was started anew since: nothing to do
};

// Restores every old value of the record, the last change first, and removes
// the record. SYS-001 without a record, TUNE-002 for one that cannot be
// believed, TUNE-003 when a value cannot be restored: the others are, and the
// record stays.
StatusOr<RevertResult> Revert(Target host, const std::string& record);

// Whether the runs after a change are all better than those before it.
bool Helps(const std::vector<double>& before, const std::vector<double>& after);

}  // namespace belay::tune

#endif  // BELAY_TOOLKIT_TUNE_APPLY_H_
