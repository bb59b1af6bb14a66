// SPDX-License-Identifier: Apache-2.0
// Stop strings in a stream of text.
#ifndef BELAY_TEXT_STOP_STOP_MATCHER_H_
#define BELAY_TEXT_STOP_STOP_MATCHER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace belay::text {

// Finds the first of several stop strings, wherever the pieces of text are
// cut: the one that is complete first, and of those that end together the
// longest. Text leaves at once, except a suffix that may be the begin of a
// stop string. Cost: O(1) a byte and stop string, whatever the text.
class StopMatcher {
 public:
  // Empty strings are ignored. Bytes are compared, so a piece may end inside
  // a character.
  explicit StopMatcher(std::vector<std::string> stops);

  // The text that is certain now. Once a stop string was found: the text
  // before it, then nothing more.
  std::string Feed(std::string_view piece);

  // The text that was held back and is no stop string after all.
  std::string Finish();

  // The stop string found, or null.
  const std::string* found() const {
    return found_ < 0 ? nullptr : &stops_[static_cast<size_t>(found_)];
  }

 private:
  void Advance(size_t stop, char c);

  std::vector<std::string> stops_;
  // Knuth-Morris-Pratt: border_[s][n] is the longest proper border of the
  // first n bytes of stop s, and n_matched_[s] how much of it stands at the
  // end of the text now.
  std::vector<std::vector<size_t>> border_;
  std::vector<size_t> n_matched_;
  std::string held_;
  int found_ = -1;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_STOP_STOP_MATCHER_H_
