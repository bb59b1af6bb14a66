// SPDX-License-Identifier: Apache-2.0
// Finds many literal texts in one pass: the sieve that keeps the parser away
// from lines that cannot matter.
#ifndef BELAY_TOOLKIT_LOGS_PARSE_MATCHER_H_
#define BELAY_TOOLKIT_LOGS_PARSE_MATCHER_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace belay::logs {

inline constexpr size_t kMaxPatterns = 384;
using PatternSet = std::bitset<kMaxPatterns>;

// Aho and Corasick's automaton over the letters that occur in the patterns,
// ASCII capitals folded. Built once, then read-only: any number of threads.
class Matcher {
 public:
  // At most kMaxPatterns texts in lower case, none empty; in all fewer than
  // 32,000 letters. (A programmer's table: CHECKed.)
  explicit Matcher(std::span<const std::string_view> patterns);

  // Adds the indices of the patterns that occur in `text` to `found`; true if
  // any does. About 2 ns a byte.
  bool Find(std::string_view text, PatternSet& found) const;

 private:
  // next_[state * n_classes + class]; the top bit says that the state has
  // outputs.
  static constexpr uint16_t kHasOutput = 0x8000;

  size_t shift_ = 0;  // of a state's row
  std::array<uint8_t, 256> class_of_{};
  std::vector<uint16_t> next_;
  std::vector<std::vector<uint16_t>> outputs_;  // [state]: patterns
};

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_PARSE_MATCHER_H_
