// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/grammar.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/error_ids.h"

namespace belay::text {
namespace {

// A schema of this size takes 20 MiB; what clients send stays far below.
constexpr size_t kMaxNodes = 1 << 18;
// Calls that may be open at once. JSON takes two or three a level.
constexpr uint32_t kMaxDepth = 256;
constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

}  // namespace

GrammarRule GrammarBuilder::NewRule() {
  rules_.push_back({.start = NewNode(), .end = NewNode()});
  return static_cast<GrammarRule>(rules_.size() - 1);
}

GrammarNode GrammarBuilder::NewNode() {
  if (nodes_.size() >= kMaxNodes) {
    is_full_ = true;
    return 0;
  }
  nodes_.emplace_back();
  return static_cast<GrammarNode>(nodes_.size() - 1);
}

void GrammarBuilder::Add(GrammarNode from, const GrammarEdge& edge) {
  if (!is_full_) nodes_[from].push_back(edge);
}

void GrammarBuilder::Bytes(GrammarNode from, uint8_t first, uint8_t last,
                           GrammarNode to) {
  Add(from, {.kind = GrammarEdge::Kind::kBytes,
             .first = first,
             .last = last,
             .rule = 0,
             .to = to});
}

void GrammarBuilder::Empty(GrammarNode from, GrammarNode to) {
  Add(from, {.kind = GrammarEdge::Kind::kEmpty,
             .first = 0,
             .last = 0,
             .rule = 0,
             .to = to});
}

void GrammarBuilder::Call(GrammarNode from, GrammarRule rule, GrammarNode to) {
  Add(from, {.kind = GrammarEdge::Kind::kCall,
             .first = 0,
             .last = 0,
             .rule = rule,
             .to = to});
}

GrammarNode GrammarBuilder::Literal(GrammarNode from, std::string_view bytes) {
  for (const char c : bytes) {
    const GrammarNode to = NewNode();
    Bytes(from, static_cast<uint8_t>(c), static_cast<uint8_t>(c), to);
    from = to;
  }
  return from;
}

GrammarNode GrammarBuilder::Call(GrammarNode from, GrammarRule rule) {
  const GrammarNode to = NewNode();
  Call(from, rule, to);
  return to;
}

// Knuth's generalisation of Dijkstra's algorithm (1977): nodes are settled in
// the order of their need, which no edge lowers.
std::vector<uint32_t> GrammarBuilder::Needs() const {
  std::vector<std::vector<Reader>> readers(nodes_.size());
  for (GrammarNode from = 0; from < nodes_.size(); ++from) {
    for (uint32_t i = 0; i < nodes_[from].size(); ++i) {
      const GrammarEdge& edge = nodes_[from][i];
      readers[edge.to].push_back({.from = from, .edge = i});
      if (edge.kind == GrammarEdge::Kind::kCall) {
        readers[rules_[edge.rule].start].push_back({.from = from, .edge = i});
      }
    }
  }
  std::vector<uint32_t> need(nodes_.size(), kNever);
  std::vector<std::vector<GrammarNode>> by_need(kMaxDepth + 1);
  for (const Rule& rule : rules_) by_need[0].push_back(rule.end);
  const auto cost_of = [&](const GrammarEdge& edge) {
    const uint32_t after = need[edge.to];
    if (edge.kind != GrammarEdge::Kind::kCall) return after;
    const uint32_t inside = need[rules_[edge.rule].start];
    return inside == kNever ? kNever : std::max(inside + 1, after);
  };
  for (uint32_t cost = 0; cost < by_need.size(); ++cost) {
    for (size_t i = 0; i < by_need[cost].size(); ++i) {
      const GrammarNode node = by_need[cost][i];
      if (need[node] != kNever) continue;
      need[node] = cost;
      for (const Reader& reader : readers[node]) {
        const uint32_t other = cost_of(nodes_[reader.from][reader.edge]);
        if (need[reader.from] == kNever && other <= kMaxDepth) {
          by_need[other].push_back(reader.from);
        }
      }
    }
  }
  return need;
}

StatusOr<std::shared_ptr<const Grammar>> GrammarBuilder::Build(
    GrammarRule root, std::string_view where) const {
  if (is_full_) {
    return MakeError(kGramTooLarge,
                     {.where = std::string(where),
                      .what = "",
                      .expected = "<= " + std::to_string(kMaxNodes) + " nodes",
                      .got = ""});
  }
  auto grammar = std::make_shared<Grammar>();
  grammar->need_ = Needs();
  grammar->root_ = root;
  grammar->max_depth_ = kMaxDepth;
  grammar->begin_.reserve(nodes_.size() + 1);
  grammar->begin_.push_back(0);
  for (const auto& edges : nodes_) {
    for (const GrammarEdge& edge : edges) {
      const bool leads_on = grammar->need_[edge.to] != kNever &&
                            (edge.kind != GrammarEdge::Kind::kCall ||
                             grammar->need_[rules_[edge.rule].start] != kNever);
      if (leads_on) grammar->edges_.push_back(edge);
    }
    grammar->begin_.push_back(static_cast<uint32_t>(grammar->edges_.size()));
  }
  grammar->is_end_.assign(nodes_.size(), 0);
  for (const Rule& rule : rules_) {
    grammar->is_end_[rule.end] = 1;
    grammar->starts_.push_back(rule.start);
  }
  if (grammar->need_[grammar->root()] == kNever) {
    return MakeError(
        kGramUnsatisfiable,
        {.where = std::string(where), .what = "", .expected = "", .got = ""});
  }
  return std::shared_ptr<const Grammar>(std::move(grammar));
}

}  // namespace belay::text
