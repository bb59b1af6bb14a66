// SPDX-License-Identifier: Apache-2.0
// Cuts text into the pieces that BPE sees: a sequence of "Split" steps with
// behavior "Isolated". Each step cuts every piece of the step before, as a text
// of its own, into the matches of a pattern and what is between them.
#ifndef BELAY_TEXT_SPLIT_PRETOKENIZER_H_
#define BELAY_TEXT_SPLIT_PRETOKENIZER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belay::text {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  // Sets `ends` to the ends of the pieces of `text` (valid UTF-8), ascending,
  // the last is text.size(). No piece is empty. TOK-006 on a match limit.
  virtual Status Split(std::string_view text,
                       std::vector<size_t>* ends) const = 0;
};

// Through PCRE2, for patterns that mean the same there as in Oniguruma with our
// Unicode tables. TOK-005 for any other, with the part that was refused.
StatusOr<std::unique_ptr<const PreTokenizer>> MakeRegexPreTokenizer(
    const std::vector<std::string>& patterns, std::string_view where);

// The three patterns that DeepSeek's tokenizers use since V3.
std::vector<std::string> DeepSeekPatterns();

// True for them in any spelling of their line ends ("\\r" or the character).
bool AreDeepSeekPatterns(const std::vector<std::string>& patterns);

// The same cuts as DeepSeekPatterns(), written by hand: no table of a regex
// engine is as fast, and it cannot run into a limit.
std::unique_ptr<const PreTokenizer> MakeDeepSeekPreTokenizer();

// The fastest that fits the patterns.
StatusOr<std::unique_ptr<const PreTokenizer>> MakePreTokenizer(
    const std::vector<std::string>& patterns, std::string_view where);

}  // namespace belay::text

#endif  // BELAY_TEXT_SPLIT_PRETOKENIZER_H_
