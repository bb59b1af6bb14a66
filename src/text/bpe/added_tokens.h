// SPDX-License-Identifier: Apache-2.0
// Takes added tokens out of the text before anything else sees it, in the way
// of the Hugging Face tokenizers' AddedVocabulary.
#ifndef BELAY_TEXT_BPE_ADDED_TOKENS_H_
#define BELAY_TEXT_BPE_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace belay::text {

// A part of the text: an added token, or text (id -1).
struct TextPart {
  std::string_view text;
  int32_t id = -1;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // Contents are unique and not empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // The parts of `text` in order; empty text parts are left out. At each place
  // the longest token wins; first those that are not `normalized` are taken
  // out of the whole, then the others of what remains.
  // `with_special` false: special tokens are not found, and neither are
  // shorter ones inside them.
  std::vector<TextPart> Split(std::string_view text, bool with_special) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  // The tokens of one pass.
  struct Set {
    std::vector<const AddedToken*> sorted;  // by content
    std::array<bool, 256> starts{};         // the first bytes of contents
  };

  static const AddedToken* LongestAt(const Set& set, std::string_view text);
  static void SplitBy(const Set& set, std::string_view text, bool with_special,
                      std::vector<TextPart>* parts);

  std::vector<AddedToken> tokens_;
  Set plain_;
  Set normalized_;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_BPE_ADDED_TOKENS_H_
