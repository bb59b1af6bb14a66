// SPDX-License-Identifier: Apache-2.0
// Which tokens may come next, and one text's way through a grammar.
#ifndef BELAY_TEXT_GRAMMAR_TOKEN_MASKS_H_
#define BELAY_TEXT_GRAMMAR_TOKEN_MASKS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/automaton.h"
#include "text/grammar/grammar.h"
#include "text/grammar/token_trie.h"

namespace belay::text {

// A grammar over a vocabulary: what one request finds out about its states,
// all others with the same grammar use. Any number of threads may share one.
class TokenMasks {
 public:
  TokenMasks(std::shared_ptr<const Grammar> grammar,
             std::shared_ptr<const TokenTrie> trie);

  const TokenTrie& trie() const { return *trie_; }

  // Bits a mask has, as 64-bit words.
  size_t n_words() const { return n_words_; }

 private:
  friend class TokenMatcher;
  struct Mask {
    std::vector<uint64_t> words;   // empty when `tokens` says it shorter
    std::vector<uint32_t> tokens;  // those allowed
    bool known = false;
  };

  const Mask& MaskOf(int32_t state);
  Mask Walk(int32_t state);  // not known when it would take too long
  // Starts anew when too much is remembered. States get a new meaning, which
  // is what epoch_ tells.
  void Trim();

  std::mutex mutex_;
  Automaton automaton_;
  std::shared_ptr<const TokenTrie> trie_;
  size_t n_words_;
  std::vector<Mask> masks_;  // by state
  size_t n_masks_ = 0;
  uint64_t epoch_ = 0;
  std::vector<int32_t> path_;  // of a walk: the state before each depth
};

// One text. Use by one thread at a time.
class TokenMatcher {
 public:
  explicit TokenMatcher(std::shared_ptr<TokenMasks> masks);

  // Sets the bit of every token that may come next and clears all others: bit
  // i % 64 of word i / 64. `bits` has n_words() words at least; those beyond
  // are cleared. At least one bit is set unless IsFinal(), with one exception:
  // a grammar so ambiguous that a mask takes a large part of a second gets
  // none, so that nobody's schema can hold up all others.
  void Allowed(std::span<uint64_t> bits);

  // Takes a token. False, with nothing changed, when it was not allowed.
  bool Accept(int32_t token);
  // The same for bytes.
  bool AcceptBytes(std::string_view bytes);

  // The text is complete; it may go on unless IsFinal().
  bool IsComplete();
  bool IsFinal();

  std::string_view text() const { return text_; }

 private:
  // The state, found again when the masks have forgotten it.
  int32_t State();

  std::shared_ptr<TokenMasks> masks_;
  std::string text_;
  int32_t state_ = 0;
  uint64_t epoch_ = 0;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_TOKEN_MASKS_H_
