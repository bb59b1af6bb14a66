// SPDX-License-Identifier: Apache-2.0
// Grammars of text as constraints of the engine.
#ifndef BELAY_SERVER_CORE_GRAMMAR_CONSTRAINT_H_
#define BELAY_SERVER_CORE_GRAMMAR_CONSTRAINT_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/constraint.h"
#include "text/grammar/token_masks.h"
#include "text/tokenizer.h"

namespace belay::server {

// Holds an answer to a grammar. Reasoning comes first and is free, but for the
// end of the turn; the grammar begins behind the token that ends it.
class GrammarConstraint final : public engine::TokenConstraint {
 public:
  struct Tokens {
    std::vector<int32_t> eos_ids;
    std::optional<int32_t> reasoning_end;  // nothing: there is no reasoning
  };

  GrammarConstraint(std::shared_ptr<text::TokenMasks> masks, Tokens tokens);

  // The masks of a grammar's states are remembered and shared; one that is met
  // for the first time takes about a millisecond and allocates.
  void Allowed(std::span<uint64_t> bits) override;
  void Accept(int32_t token) override;
  bool Done() const override { return done_; }

 private:
  text::TokenMatcher matcher_;
  Tokens tokens_;
  bool in_reasoning_;
  bool done_ = false;
};

// The grammars of recent requests over one vocabulary. Any thread.
class GrammarShelf {
 public:
  using Compile =
      std::function<StatusOr<std::shared_ptr<const text::Grammar>>()>;

  // The masks of the grammar that `key` stands for; `compile` is called when
  // it is not there. Errors: those of `compile`, GRAM-008.
  StatusOr<std::shared_ptr<text::TokenMasks>> Find(
      const text::Tokenizer& tokenizer, const std::string& key,
      const Compile& compile);

 private:
  using Entry = std::pair<std::string, std::shared_ptr<text::TokenMasks>>;

  std::mutex mutex_;
  std::shared_ptr<const text::TokenTrie> trie_;
  std::list<Entry> recent_;  // the last used first
};

}  // namespace belay::server

#endif  // BELAY_SERVER_CORE_GRAMMAR_CONSTRAINT_H_
