// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/automaton.h"

#include <algorithm>
#include <utility>

namespace belay::text {
namespace {

constexpr uint64_t Key(uint32_t high, uint32_t low) {
  return static_cast<uint64_t>(high) << 32 | low;
}

}  // namespace

Automaton::Automaton(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)) {
  Clear();
}

void Automaton::Clear() {
  frames_.clear();
  frame_ids_.clear();
  states_.clear();
  state_ids_.clear();
  Reach(grammar_->root(), kNoFrame);
  start_ = Close();
}

uint32_t Automaton::FrameOf(GrammarNode back, uint32_t parent) {
  const auto [it, is_new] = frame_ids_.try_emplace(
      Key(back, parent), static_cast<uint32_t>(frames_.size()));
  if (is_new) {
    frames_.push_back(
        {.back = back, .parent = parent, .depth = DepthOf(parent) + 1});
  }
  return it->second;
}

void Automaton::Reach(GrammarNode node, uint32_t frame) {
  ++work_;
  if (DepthOf(frame) + grammar_->need(node) > grammar_->max_depth()) return;
  if (!seen_.try_emplace(Key(node, frame), true).second) return;
  todo_.push_back({.node = node, .frame = frame});
}

void Automaton::Expand(Place place) {
  if (grammar_->is_end(place.node)) {
    if (place.frame == kNoFrame) {
      complete_ = true;
    } else {
      Reach(frames_[place.frame].back, frames_[place.frame].parent);
    }
    return;
  }
  bool takes_byte = false;
  for (const GrammarEdge& edge : grammar_->edges(place.node)) {
    switch (edge.kind) {
      case GrammarEdge::Kind::kBytes:
        takes_byte = true;
        break;
      case GrammarEdge::Kind::kEmpty:
        Reach(edge.to, place.frame);
        break;
      case GrammarEdge::Kind::kCall: {
        if (DepthOf(place.frame) + grammar_->need(edge.to) >
            grammar_->max_depth()) {
          break;
        }
        // A call at the end of a rule needs no way back to it.
        const bool is_last = grammar_->is_end(edge.to);
        const uint32_t frame =
            is_last ? place.frame : FrameOf(edge.to, place.frame);
        Reach(grammar_->rule_start(edge.rule), frame);
        break;
      }
    }
  }
  if (takes_byte) places_.push_back(place);
}

int32_t Automaton::Close() {
  places_.clear();
  complete_ = false;
  while (!todo_.empty()) {
    const Place place = todo_.back();
    todo_.pop_back();
    Expand(place);
  }
  seen_.clear();
  if (places_.empty() && !complete_) return kDead;
  std::sort(places_.begin(), places_.end());
  const auto [it, is_new] = state_ids_.try_emplace(
      {places_, complete_}, static_cast<int32_t>(states_.size()));
  if (is_new) {
    State& state = states_.emplace_back();
    state.places = places_;
    state.complete = complete_;
    state.next.fill(kUnknown);
  }
  return it->second;
}

int32_t Automaton::Step(int32_t state, uint8_t byte) {
  // The deque keeps its elements in place while Close() adds one.
  State& from = states_[static_cast<size_t>(state)];
  work_ += from.places.size();
  for (const Place& place : from.places) {
    for (const GrammarEdge& edge : grammar_->edges(place.node)) {
      if (edge.kind == GrammarEdge::Kind::kBytes && edge.first <= byte &&
          byte <= edge.last) {
        Reach(edge.to, place.frame);
      }
    }
  }
  return from.next[byte] = Close();
}

}  // namespace belay::text
