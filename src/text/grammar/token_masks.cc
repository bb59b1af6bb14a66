// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/token_masks.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace belay::text {
namespace {

// What is remembered for one grammar: about 16 MiB of states (1 KiB each) and
// as much of masks at 129k tokens.
constexpr size_t kMaxStates = 16384;
constexpr size_t kMaxMasks = 1024;
// Of Automaton::work() for one mask: about 0.3 s. Usual grammars take less than
// a thousandth of it.
constexpr uint64_t kMaxWork = uint64_t{1} << 24;
// Below this share of the vocabulary a list is shorter than the bits.
constexpr size_t kListShare = 64;

}  // namespace

TokenMasks::TokenMasks(std::shared_ptr<const Grammar> grammar,
                       std::shared_ptr<const TokenTrie> trie)
    : automaton_(std::move(grammar)),
      trie_(std::move(trie)),
      n_words_((static_cast<size_t>(trie_->vocab_size()) + 63) / 64),
      path_(trie_->max_token_bytes() + 1) {}

void TokenMasks::Trim() {
  if (automaton_.n_states() < kMaxStates && n_masks_ < kMaxMasks) return;
  automaton_.Clear();
  masks_.clear();
  n_masks_ = 0;
  ++epoch_;
}

TokenMasks::Mask TokenMasks::Walk(int32_t state) {
  Mask mask;
  mask.known = true;
  const uint64_t last = automaton_.work() + kMaxWork;
  path_[0] = state;
  const auto nodes = trie_->nodes();
  for (size_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    const int32_t next = automaton_.Next(path_[node.depth], node.byte);
    if (automaton_.work() > last) return {};
    if (next == Automaton::kDead) {
      i = node.skip;
      continue;
    }
    path_[node.depth + 1u] = next;
    for (int32_t t = node.token; t >= 0; t = trie_->NextSame(t)) {
      mask.tokens.push_back(static_cast<uint32_t>(t));
    }
    ++i;
  }
  if (mask.tokens.size() * kListShare <
      static_cast<size_t>(trie_->vocab_size())) {
    mask.tokens.shrink_to_fit();
    return mask;
  }
  mask.words.assign(n_words_, 0);
  for (const uint32_t t : mask.tokens)
    mask.words[t / 64] |= uint64_t{1} << (t % 64);
  mask.tokens = {};
  return mask;
}

const TokenMasks::Mask& TokenMasks::MaskOf(int32_t state) {
  const auto index = static_cast<size_t>(state);
  if (index >= masks_.size()) masks_.resize(index + 1);
  if (!masks_[index].known) {
    masks_[index] = Walk(state);
    ++n_masks_;
  }
  return masks_[index];
}

TokenMatcher::TokenMatcher(std::shared_ptr<TokenMasks> masks)
    : masks_(std::move(masks)) {
  const std::lock_guard<std::mutex> lock(masks_->mutex_);
  state_ = masks_->automaton_.start();
  epoch_ = masks_->epoch_;
}

int32_t TokenMatcher::State() {
  masks_->Trim();
  if (epoch_ != masks_->epoch_) {
    state_ = masks_->automaton_.start();
    for (const char c : text_) {
      state_ = masks_->automaton_.Next(state_, static_cast<uint8_t>(c));
    }
    epoch_ = masks_->epoch_;
  }
  return state_;
}

void TokenMatcher::Allowed(std::span<uint64_t> bits) {
  BELAY_CHECK(bits.size() >= masks_->n_words_);
  const std::lock_guard<std::mutex> lock(masks_->mutex_);
  const TokenMasks::Mask& mask = masks_->MaskOf(State());
  const auto rest =
      std::copy(mask.words.begin(), mask.words.end(), bits.begin());
  std::fill(rest, bits.end(), uint64_t{0});
  for (const uint32_t t : mask.tokens) bits[t / 64] |= uint64_t{1} << (t % 64);
}

bool TokenMatcher::Accept(int32_t token) {
  const std::string_view bytes = masks_->trie().BytesOf(token);
  return !bytes.empty() && AcceptBytes(bytes);
}

bool TokenMatcher::AcceptBytes(std::string_view bytes) {
  const std::lock_guard<std::mutex> lock(masks_->mutex_);
  int32_t state = State();
  for (const char c : bytes) {
    state = masks_->automaton_.Next(state, static_cast<uint8_t>(c));
    if (state == Automaton::kDead) return false;
  }
  state_ = state;
  text_ += bytes;
  return true;
}

bool TokenMatcher::IsComplete() {
  const std::lock_guard<std::mutex> lock(masks_->mutex_);
  return masks_->automaton_.IsComplete(State());
}

bool TokenMatcher::IsFinal() {
  const std::lock_guard<std::mutex> lock(masks_->mutex_);
  return masks_->automaton_.IsFinal(State());
}

}  // namespace belay::text
