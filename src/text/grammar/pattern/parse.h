// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TEXT_GRAMMAR_PATTERN_PARSE_H_
#define BELAY_TEXT_GRAMMAR_PATTERN_PARSE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/grammar/code_points.h"

namespace belay::text {

inline constexpr uint32_t kPatternUnlimited = 0xffffffffu;

// A regular expression as a tree.
struct PatternTree {
  enum class Kind { kSet, kSequence, kChoice, kRepeat };
  Kind kind = Kind::kSequence;
  CodePointSet set;                // kSet
  std::vector<PatternTree> parts;  // all but kSet; one for kRepeat
  uint32_t min = 0;                // kRepeat
  uint32_t max = 0;                // kRepeat; kPatternUnlimited = no end
};

// One of the outermost alternatives.
struct PatternBranch {
  PatternTree tree;
  bool from_start = false;  // ^
  bool to_end = false;      // $
};

// Error: GRAM-003.
StatusOr<std::vector<PatternBranch>> ParsePattern(std::string_view pattern,
                                                  std::string_view where);

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_PATTERN_PARSE_H_
