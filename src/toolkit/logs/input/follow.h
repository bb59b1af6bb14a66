// SPDX-License-Identifier: Apache-2.0
// Logs that still grow.
#ifndef BELAY_TOOLKIT_LOGS_INPUT_FOLLOW_H_
#define BELAY_TOOLKIT_LOGS_INPUT_FOLLOW_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "toolkit/logs/judge/diagnosis.h"
#include "toolkit/logs/judge/scanner.h"

namespace belay::logs {

// Reads what files have gained since the last look: new files in the folders
// too; a file that shrank is read again from its start. Archives are left out.
class Follower {
 public:
  Follower(const Knowledge& knowledge, std::vector<std::string> paths)
      : knowledge_(knowledge), paths_(std::move(paths)) {}

  // One look. SYS-001 when one of the paths is not there.
  Status Poll();

  // What all that was read says.
  Diagnosis Now() const;

  // The findings of Now() that no call has returned before, in order.
  std::vector<Finding> News();

 private:
  struct Tail {
    std::unique_ptr<Scanner> scanner;
    uint64_t at = 0;
  };
  void ReadOn(const std::string& path, Tail& tail);

  const Knowledge& knowledge_;
  std::vector<std::string> paths_;
  std::map<std::string, Tail> tails_;
  std::set<const diag::Entry*> told_;
};

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_INPUT_FOLLOW_H_
