// SPDX-License-Identifier: Apache-2.0
// Random walks through a grammar, by bytes and by tokens.
#ifndef BELAY_TEXT_GRAMMAR_WALK_TEST_H_
#define BELAY_TEXT_GRAMMAR_WALK_TEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "text/grammar/automaton.h"
#include "text/grammar/token_masks.h"

namespace belay::text {

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  size_t Below(size_t n) { return RandomBits(seed_, counter_++) % n; }
  bool Chance(int percent) { return Below(100) < static_cast<size_t>(percent); }

 private:
  uint64_t seed_;
  uint64_t counter_ = 0;
};

// The grammar takes the whole text and may end there.
inline bool Matches(const std::shared_ptr<const Grammar>& grammar,
                    std::string_view text) {
  Automaton automaton(grammar);
  int32_t state = automaton.start();
  for (const char c : text) {
    state = automaton.Next(state, static_cast<uint8_t>(c));
    if (state == Automaton::kDead) return false;
  }
  return automaton.IsComplete(state);
}

struct WalkResult {
  std::string text;
  bool complete = false;
  bool dead_end = false;  // nothing was allowed although it was not complete
};

// Takes random bytes that are allowed; after `n_wild` of them prefers those
// that close things.
inline WalkResult WalkBytes(Automaton& automaton, Dice& dice, size_t n_wild) {
  constexpr std::string_view kClosers = "\"}]0e";
  WalkResult walk;
  int32_t state = automaton.start();
  while (walk.text.size() < n_wild + 2000) {
    walk.complete = automaton.IsComplete(state);
    if (automaton.IsFinal(state)) return walk;
    if (walk.complete && (walk.text.size() > n_wild || dice.Chance(20))) {
      return walk;
    }
    std::vector<uint8_t> allowed;
    for (int byte = 0; byte < 256; ++byte) {
      if (automaton.Next(state, static_cast<uint8_t>(byte)) !=
          Automaton::kDead) {
        allowed.push_back(static_cast<uint8_t>(byte));
      }
    }
    if (allowed.empty()) {
      walk.dead_end = true;
      return walk;
    }
    uint8_t byte = allowed[dice.Below(allowed.size())];
    if (walk.text.size() > n_wild || dice.Chance(15)) {
      for (const uint8_t one : allowed) {
        if (kClosers.find(static_cast<char>(one)) != std::string_view::npos) {
          byte = one;
          break;
        }
      }
    }
    walk.text += static_cast<char>(byte);
    state = automaton.Next(state, byte);
  }
  return walk;
}

inline std::vector<int32_t> AllowedTokens(TokenMatcher& matcher,
                                          size_t n_words) {
  std::vector<uint64_t> bits(n_words);
  matcher.Allowed(bits);
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < n_words * 64; ++i) {
    if ((bits[i / 64] >> (i % 64) & 1u) != 0) {
      tokens.push_back(static_cast<int32_t>(i));
    }
  }
  return tokens;
}

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_WALK_TEST_H_
