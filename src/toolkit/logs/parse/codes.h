// SPDX-License-Identifier: Apache-2.0
// Error codes in log lines: which number means which component's code.
#ifndef BELAY_TOOLKIT_LOGS_PARSE_CODES_H_
#define BELAY_TOOLKIT_LOGS_PARSE_CODES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diag/catalogue.h"

namespace belay::logs {

struct FoundCode {
  const diag::Entry* entry = nullptr;  // null: a code that no entry explains
  std::string text;                    // as the catalogue writes it
};

// Finds the catalogue's codes in lines. A number counts only where words say
// that it is a code ("error code is", "runtime result =", "ErrCode=", "ret[",
// "drvRetCode=", ...) and in the component that they name: a step count of
// 507000 is none. E-strings count where a log prints them (in front of ":",
// "[PID" or ")", or at the start).
class CodeIndex {
 public:
  // `catalogue` must outlive the index and not change.
  explicit CodeIndex(const diag::Catalogue& catalogue);

  // `message`: a line behind its head; `module`: the plog module or "". The
  // codes in the order of the line, each once, at most 16.
  std::vector<FoundCode> Find(std::string_view message,
                              std::string_view module) const;

  // The entry of a component's code; null if there is none.
  const diag::Entry* Of(std::string_view component, int64_t value) const;
  const diag::Entry* OfText(std::string_view code) const;

 private:
  class Line;

  std::map<std::pair<std::string, int64_t>, const diag::Entry*> numbers_;
  std::map<int64_t, const diag::Entry*> six_digits_;
  std::map<std::string, const diag::Entry*, std::less<>> texts_;
};

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_PARSE_CODES_H_
