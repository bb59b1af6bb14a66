// SPDX-License-Identifier: Apache-2.0
// The bytes of a vocabulary as a tree, so that tokens with a common beginning
// are looked at together.
#ifndef BELAY_TEXT_GRAMMAR_TOKEN_TRIE_H_
#define BELAY_TEXT_GRAMMAR_TOKEN_TRIE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"

namespace belay::text {

// A token that stands for a marker of the chat encoding, by its spelling.
struct MarkerToken {
  std::string piece;   // "｜DSML｜"
  uint8_t number = 0;  // its text is kMarkerByte and this
};

// Immutable; any number of threads may read one.
class TokenTrie {
 public:
  // Every token but the added ones (special or not: all of them are markers of
  // the chat encoding) and, of these, `markers`. A marker that the vocabulary
  // does not have is left out.
  // Errors: GRAM-008 when a byte that UTF-8 may need is no token by itself:
  // then a text could come to a point where no token goes on.
  static StatusOr<std::shared_ptr<const TokenTrie>> Create(
      const Tokenizer& tokenizer, std::span<const MarkerToken> markers = {});

  struct Node {
    uint32_t skip = 0;   // the node after this one's children
    int32_t token = -1;  // the first that ends here; -1 = none
    uint16_t depth = 0;  // bytes before this one
    uint8_t byte = 0;
  };
  // In the order of a walk: a node, then its children.
  std::span<const Node> nodes() const { return nodes_; }

  // The next token with the same bytes, or -1.
  int32_t NextSame(int32_t token) const {
    return same_[static_cast<size_t>(token)];
  }
  // The bytes of a token in the tree; "" for any other.
  std::string_view BytesOf(int32_t token) const;

  int32_t vocab_size() const { return static_cast<int32_t>(same_.size()); }
  size_t max_token_bytes() const { return max_token_bytes_; }

 private:
  struct Entry {
    std::string bytes;
    int32_t token = 0;
  };
  void Add(std::vector<Entry> entries);

  std::vector<Node> nodes_;
  std::vector<int32_t> same_;
  std::vector<std::string> bytes_;  // by token
  size_t max_token_bytes_ = 0;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_TOKEN_TRIE_H_
