// SPDX-License-Identifier: Apache-2.0
// A context-free language over bytes, as a network of nodes: an edge takes a
// byte, nothing, or a whole rule. What constrained decoding holds a model to.
#ifndef BELAY_TEXT_GRAMMAR_GRAMMAR_H_
#define BELAY_TEXT_GRAMMAR_GRAMMAR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belay::text {

using GrammarNode = uint32_t;
using GrammarRule = uint32_t;

// Tokens that are no text (markers of the chat encoding) come as this byte,
// which is never part of UTF-8, and their number in the token table.
inline constexpr uint8_t kMarkerByte = 0xff;

struct GrammarEdge {
  enum class Kind : uint8_t {
    kBytes,  // takes one byte in [first, last]
    kEmpty,  // takes nothing
    kCall,   // takes what `rule` derives
  };
  Kind kind = Kind::kEmpty;
  uint8_t first = 0;
  uint8_t last = 0;
  GrammarRule rule = 0;
  GrammarNode to = 0;
};

// Immutable; any number of threads may read one.
class Grammar {
 public:
  std::span<const GrammarEdge> edges(GrammarNode node) const {
    return {edges_.data() + begin_[node], begin_[node + 1] - begin_[node]};
  }
  // A rule is left at its end node, which has no edges.
  bool is_end(GrammarNode node) const { return is_end_[node] != 0; }
  GrammarNode rule_start(GrammarRule rule) const { return starts_[rule]; }
  GrammarNode root() const { return starts_[root_]; }

  // Calls that must be open at once, at least, to get from `node` to the end
  // of its rule. A configuration `d` calls deep at `node` can always be
  // completed while d + need <= max_depth(): this is why nothing dead-ends.
  uint32_t need(GrammarNode node) const { return need_[node]; }
  uint32_t max_depth() const { return max_depth_; }
  size_t n_nodes() const { return is_end_.size(); }

 private:
  friend class GrammarBuilder;
  std::vector<GrammarEdge> edges_;
  std::vector<uint32_t> begin_;  // [n_nodes + 1]
  std::vector<uint8_t> is_end_;
  std::vector<uint32_t> need_;
  std::vector<GrammarNode> starts_;
  GrammarRule root_ = 0;
  uint32_t max_depth_ = 0;
};

// Before it has taken a byte, a rule must not call itself with something left
// to do behind the call: such a text could be read in endless ways.
class GrammarBuilder {
 public:
  // A rule with a start and an end node and nothing between them.
  GrammarRule NewRule();
  GrammarNode start(GrammarRule rule) const { return rules_[rule].start; }
  GrammarNode end(GrammarRule rule) const { return rules_[rule].end; }

  GrammarNode NewNode();
  void Bytes(GrammarNode from, uint8_t first, uint8_t last, GrammarNode to);
  void Empty(GrammarNode from, GrammarNode to);
  void Call(GrammarNode from, GrammarRule rule, GrammarNode to);

  // The same with a new node at the end, which is returned.
  GrammarNode Literal(GrammarNode from, std::string_view bytes);
  GrammarNode Call(GrammarNode from, GrammarRule rule);

  // True when the network has outgrown its limit. What is added then is lost,
  // and Build fails, so a loop over a user's count need only look here.
  bool is_full() const { return is_full_; }

  // Paths that lead nowhere are cut off. `where` names the grammar in errors.
  // Errors: GRAM-004 (no text fits), GRAM-005 (too large).
  StatusOr<std::shared_ptr<const Grammar>> Build(GrammarRule root,
                                                 std::string_view where) const;

 private:
  struct Rule {
    GrammarNode start = 0;
    GrammarNode end = 0;
  };
  struct Reader {  // an edge seen from what it leads to
    GrammarNode from = 0;
    uint32_t edge = 0;
  };

  void Add(GrammarNode from, const GrammarEdge& edge);
  std::vector<uint32_t> Needs() const;

  std::vector<std::vector<GrammarEdge>> nodes_;
  std::vector<Rule> rules_;
  bool is_full_ = false;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_GRAMMAR_H_
