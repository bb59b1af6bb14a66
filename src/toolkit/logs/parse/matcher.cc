// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/parse/matcher.h"

#include <bit>
#include <deque>

#include "base/error.h"

namespace belay::logs {
namespace {

uint8_t Fold(uint8_t c) {
  return c >= 'A' && c <= 'Z' ? static_cast<uint8_t>(c - 'A' + 'a') : c;
}

}  // namespace

Matcher::Matcher(std::span<const std::string_view> patterns) {
  BELAY_CHECK(patterns.size() <= kMaxPatterns);
  size_t n_classes = 1;  // class 0: every byte that is in no pattern
  for (const std::string_view pattern : patterns) {
    BELAY_CHECK(!pattern.empty());
    for (const char letter : pattern) {
      uint8_t& of = class_of_[static_cast<uint8_t>(letter)];
      if (of == 0) of = static_cast<uint8_t>(n_classes++);
    }
  }
  for (size_t c = 0; c < 256; ++c) {
    class_of_[c] = class_of_[Fold(static_cast<uint8_t>(c))];
  }
  shift_ = static_cast<size_t>(std::bit_width(n_classes - 1));
  const size_t row = size_t{1} << shift_;

  // The tree of the patterns; 0 is the root and means "no child" as well.
  next_.assign(row, 0);
  outputs_.resize(1);
  for (size_t p = 0; p < patterns.size(); ++p) {
    size_t state = 0;
    for (const char letter : patterns[p]) {
      const size_t edge =
          (state << shift_) + class_of_[static_cast<uint8_t>(letter)];
      if (next_[edge] == 0) {
        BELAY_CHECK(outputs_.size() < kHasOutput);
        next_[edge] = static_cast<uint16_t>(outputs_.size());
        outputs_.emplace_back();
        next_.resize(next_.size() + row, 0);
      }
      state = next_[edge];
    }
    outputs_[state].push_back(static_cast<uint16_t>(p));
  }

  // Breadth first: where a branch ends, go on in the longest suffix.
  std::vector<uint16_t> fallback(outputs_.size(), 0);
  std::deque<uint16_t> queue;
  for (size_t c = 0; c < row; ++c) {
    if (next_[c] != 0) queue.push_back(next_[c]);
  }
  while (!queue.empty()) {
    const size_t state = queue.front();
    queue.pop_front();
    const size_t other = fallback[state];
    outputs_[state].insert(outputs_[state].end(), outputs_[other].begin(),
                           outputs_[other].end());
    for (size_t c = 0; c < row; ++c) {
      uint16_t& child = next_[(state << shift_) + c];
      const uint16_t beyond = next_[(other << shift_) + c];
      if (child == 0) {
        child = beyond;
      } else {
        fallback[child] = beyond;
        queue.push_back(child);
      }
    }
  }
  for (uint16_t& state : next_) {
    if (!outputs_[state].empty()) state |= kHasOutput;
  }
}

bool Matcher::Find(std::string_view text, PatternSet& found) const {
  size_t state = 0;
  bool any = false;
  for (const char letter : text) {
    const uint16_t next =
        next_[(state << shift_) + class_of_[static_cast<uint8_t>(letter)]];
    state = next & ~kHasOutput;
    if ((next & kHasOutput) != 0) [[unlikely]] {
      any = true;
      for (const uint16_t pattern : outputs_[state]) found.set(pattern);
    }
  }
  return any;
}

}  // namespace belay::logs
