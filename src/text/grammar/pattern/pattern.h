// SPDX-License-Identifier: Apache-2.0
// Regular expressions of JSON Schema as automata over characters.
//
// The subset of ECMA-262 (with the u flag) that says which texts match:
// literals, ".", classes, \d \w \s and their opposites, escapes, groups,
// alternatives, the quantifiers (lazy ones match the same texts), and ^ and $
// at the ends of the whole pattern or of its outermost alternatives.
#ifndef BELAY_TEXT_GRAMMAR_PATTERN_PATTERN_H_
#define BELAY_TEXT_GRAMMAR_PATTERN_PATTERN_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/grammar/code_points.h"

namespace belay::text {

// Non-deterministic; node 0 is the start.
struct PatternNfa {
  struct Step {
    uint32_t set = 0;  // index into sets
    uint32_t to = 0;
  };
  struct Node {
    std::vector<Step> steps;
    std::vector<uint32_t> empty;  // nodes reached without a character
  };
  std::vector<Node> nodes;
  std::vector<CodePointSet> sets;
  uint32_t accept = 0;
};

// As JSON Schema says, a text matches when any part of it does. `where` names
// the pattern's place. Error: GRAM-003, with the feature that is not supported
// or what is malformed.
StatusOr<PatternNfa> CompilePattern(std::string_view pattern,
                                    std::string_view where);

// The pattern that stands for a format of JSON Schema, or nothing for one that
// is not known here.
std::optional<std::string_view> PatternOfFormat(std::string_view format);

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_PATTERN_PATTERN_H_
