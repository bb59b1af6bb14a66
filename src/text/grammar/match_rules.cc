// SPDX-License-Identifier: Apache-2.0
// JsonRules::AddMatching: a pattern and a length at once.
#include <algorithm>
#include <map>
#include <utility>

#include "text/grammar/json_rules.h"

namespace belay::text {
namespace {

// Nodes of the product of a pattern's automaton and a counter of characters.
class Product {
 public:
  Product(GrammarBuilder& builder, const PatternNfa& pattern, TextForm form,
          LengthRange length)
      : builder_(builder), pattern_(pattern), length_(length) {
    for (CodePointSet set : pattern.sets) {
      if (form == TextForm::kPlain) set = WithoutRest(set, PlainCharacters());
      const GrammarRule rule = builder.NewRule();
      AddCharacters(builder, builder.start(rule), set, form, builder.end(rule));
      characters_.push_back(rule);
    }
  }

  void Add(GrammarNode from, GrammarNode to) {
    builder_.Empty(from, NodeAt({.node = 0, .n_characters = 0}));
    while (!todo_.empty() && !builder_.is_full()) {
      const auto [place, node] = todo_.back();
      todo_.pop_back();
      AddEdges(place, node, to);
    }
  }

 private:
  struct Place {
    uint32_t node = 0;
    uint32_t n_characters = 0;
    // clang-tidy 14 takes the 0 of a defaulted <=> for a pointer.
    // NOLINTNEXTLINE(modernize-use-nullptr)
    auto operator<=>(const Place&) const = default;
  };

  // What both sets have.
  static CodePointSet WithoutRest(const CodePointSet& a,
                                  const CodePointSet& b) {
    CodePointSet out = Complement(a);
    const CodePointSet not_b = Complement(b);
    out.insert(out.end(), not_b.begin(), not_b.end());
    return Complement(Normalize(std::move(out)));
  }

  GrammarNode NodeAt(const Place& place) {
    const auto found = nodes_.find(place);
    if (found != nodes_.end()) return found->second;
    const GrammarNode node = builder_.NewNode();
    nodes_[place] = node;
    todo_.push_back({place, node});
    return node;
  }

  void AddEdges(const Place& place, GrammarNode node, GrammarNode to) {
    const uint32_t n = place.n_characters;
    if (place.node == pattern_.accept && n >= length_.min) {
      builder_.Empty(node, to);
    }
    for (const uint32_t next : pattern_.nodes[place.node].empty) {
      builder_.Empty(node, NodeAt({.node = next, .n_characters = n}));
    }
    if (length_.max && n >= *length_.max) return;
    // Without a maximum, all counts from the minimum on are alike.
    const uint32_t n_next = length_.max ? n + 1 : std::min(n + 1, length_.min);
    for (const PatternNfa::Step& step : pattern_.nodes[place.node].steps) {
      builder_.Call(node, characters_[step.set],
                    NodeAt({.node = step.to, .n_characters = n_next}));
    }
  }

  GrammarBuilder& builder_;
  const PatternNfa& pattern_;
  LengthRange length_;
  std::vector<GrammarRule> characters_;  // by set
  std::map<Place, GrammarNode> nodes_;
  std::vector<std::pair<Place, GrammarNode>> todo_;
};

}  // namespace

void JsonRules::AddMatching(GrammarNode from, const PatternNfa& pattern,
                            TextForm form, LengthRange length, GrammarNode to) {
  Product(builder_, pattern, form, length).Add(from, to);
}

}  // namespace belay::text
