// SPDX-License-Identifier: Apache-2.0
// The record of what was before. It is on disk before the first change, so that
// whatever ends `belay tune --apply`, `--revert` finds every old value.
#ifndef BELAY_TOOLKIT_TUNE_JOURNAL_H_
#define BELAY_TOOLKIT_TUNE_JOURNAL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "toolkit/tune/plan.h"

namespace belay::tune {

enum class ChangeState : uint8_t {
  kPlanned,  // about to be written, or written when the process was killed
  kApplied,  // written; measured next
  kKept,     // it helped
  kUndone,   // the old value is back, or the kernel took no other
};
std::string_view NameOf(ChangeState state);  // "planned", ...

struct Change {
  Setting setting;
  ChangeState state = ChangeState::kPlanned;
};

struct Journal {
  std::string boot;  // boot id of the kernel: its settings end with it
  std::vector<Change> changes;

  // Whether any change may be in effect.
  bool is_open() const;
};

// {"format": 1, "boot": "...", "changes": [{"topic": "governor", "path": "...",
// "old": "powersave", "new": "performance", "state": "kept"}]}
std::string JournalToJson(const Journal& journal);

// TUNE-002 for anything else, for a path that is no setting (IsTunable) and for
// values that no setting has (control characters, more than 4096 bytes).
StatusOr<Journal> ParseJournal(std::string_view json, const std::string& where);

}  // namespace belay::tune

#endif  // BELAY_TOOLKIT_TUNE_JOURNAL_H_
