// SPDX-License-Identifier: Apache-2.0
#include "server/core/grammar_constraint.h"

#include <algorithm>

#include "text/chat/tokens.h"

namespace belay::server {
namespace {

// Grammars that are kept. Each may grow to about 32 MiB when its texts lead to
// many states; usual ones stay below one.
constexpr size_t kMaxGrammars = 16;

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<text::TokenMasks> masks,
                                     Tokens tokens)
    : matcher_(std::move(masks)),
      tokens_(std::move(tokens)),
      in_reasoning_(tokens_.reasoning_end.has_value()) {}

void GrammarConstraint::Allowed(std::span<uint64_t> bits) {
  const auto set = [&](int32_t token, bool on) {
    const auto t = static_cast<size_t>(token);
    if (token < 0 || t / 64 >= bits.size()) return;
    const uint64_t bit = uint64_t{1} << (t % 64);
    bits[t / 64] = on ? bits[t / 64] | bit : bits[t / 64] & ~bit;
  };
  if (in_reasoning_) {
    std::fill(bits.begin(), bits.end(), ~uint64_t{0});
    for (const int32_t eos : tokens_.eos_ids) set(eos, false);
    return;
  }
  matcher_.Allowed(bits);
  if (matcher_.IsComplete()) {
    for (const int32_t eos : tokens_.eos_ids) set(eos, true);
  }
}

void GrammarConstraint::Accept(int32_t token) {
  if (in_reasoning_) {
    in_reasoning_ = token != *tokens_.reasoning_end;
    return;
  }
  const auto& eos = tokens_.eos_ids;
  if (std::find(eos.begin(), eos.end(), token) != eos.end()) {
    done_ = true;
    return;
  }
  // A token that was not allowed can only be a bug of the caller's; the answer
  // ends there, rather than go on without a constraint.
  done_ = !matcher_.Accept(token) || matcher_.IsFinal();
}

StatusOr<std::shared_ptr<text::TokenMasks>> GrammarShelf::Find(
    const text::Tokenizer& tokenizer, const std::string& key,
    const Compile& compile) {
  std::shared_ptr<const text::TokenTrie> trie;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found =
        std::find_if(recent_.begin(), recent_.end(),
                     [&](const Entry& entry) { return entry.first == key; });
    if (found != recent_.end()) {
      recent_.splice(recent_.begin(), recent_, found);
      return found->second;
    }
    if (trie_ == nullptr) {
      const text::MarkerToken dsml = {std::string(text::kDsml), 0};
      BELAY_ASSIGN_OR_RETURN(
          trie_, text::TokenTrie::Create(tokenizer, std::span(&dsml, 1)));
    }
    trie = trie_;
  }
  // Not under the lock: a large schema takes a while.
  BELAY_ASSIGN_OR_RETURN(auto grammar, compile());
  auto masks =
      std::make_shared<text::TokenMasks>(std::move(grammar), std::move(trie));
  const std::lock_guard<std::mutex> lock(mutex_);
  recent_.emplace_front(key, masks);
  if (recent_.size() > kMaxGrammars) recent_.pop_back();
  return masks;
}

}  // namespace belay::server
