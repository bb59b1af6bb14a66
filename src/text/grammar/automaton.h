// SPDX-License-Identifier: Apache-2.0
// A grammar read byte by byte. Every set of places in which the text may be is
// one numbered state; states and the steps between them are found when they
// are first needed and remembered.
#ifndef BELAY_TEXT_GRAMMAR_AUTOMATON_H_
#define BELAY_TEXT_GRAMMAR_AUTOMATON_H_

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "text/grammar/grammar.h"

namespace belay::text {

// Use by one thread at a time.
class Automaton {
 public:
  static constexpr int32_t kDead = -1;

  explicit Automaton(std::shared_ptr<const Grammar> grammar);

  int32_t start() const { return start_; }

  // The state after one more byte, or kDead when no text of the language goes
  // on so. Every other state can be completed.
  int32_t Next(int32_t state, uint8_t byte) {
    const int32_t next = states_[static_cast<size_t>(state)].next[byte];
    return next != kUnknown ? next : Step(state, byte);
  }

  // The text so far is one of the language.
  bool IsComplete(int32_t state) const {
    return states_[static_cast<size_t>(state)].complete;
  }
  // And none goes on.
  bool IsFinal(int32_t state) const {
    const State& s = states_[static_cast<size_t>(state)];
    return s.complete && s.places.empty();
  }

  size_t n_states() const { return states_.size(); }
  // Places looked at since the start, in all steps: what steps cost.
  uint64_t work() const { return work_; }

  // Forgets all states. Those held outside become meaningless.
  void Clear();

 private:
  static constexpr int32_t kUnknown = -2;
  static constexpr uint32_t kNoFrame = 0xffffffffu;

  // Where to go on after the rule; frames with equal content are one.
  struct Frame {
    GrammarNode back = 0;
    uint32_t parent = kNoFrame;
    uint32_t depth = 1;
  };
  struct Place {
    GrammarNode node = 0;
    uint32_t frame = kNoFrame;
    // clang-tidy 14 takes the 0 of a defaulted <=> for a pointer.
    // NOLINTNEXTLINE(modernize-use-nullptr)
    auto operator<=>(const Place&) const = default;
  };
  struct State {
    std::vector<Place> places;  // sorted; each has an edge that takes a byte
    bool complete = false;
    std::array<int32_t, 256> next;
  };

  uint32_t DepthOf(uint32_t frame) const {
    return frame == kNoFrame ? 0 : frames_[frame].depth;
  }
  uint32_t FrameOf(GrammarNode back, uint32_t parent);
  int32_t Step(int32_t state, uint8_t byte);
  // The state of all places that are reached from todo_ without a byte.
  int32_t Close();
  void Expand(Place place);
  void Reach(GrammarNode node, uint32_t frame);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, uint32_t> frame_ids_;
  std::deque<State> states_;
  std::map<std::pair<std::vector<Place>, bool>, int32_t> state_ids_;
  int32_t start_ = 0;
  // Of the Close() that is going on.
  std::vector<Place> todo_;
  std::unordered_map<uint64_t, bool> seen_;
  std::vector<Place> places_;
  bool complete_ = false;
  uint64_t work_ = 0;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_AUTOMATON_H_
