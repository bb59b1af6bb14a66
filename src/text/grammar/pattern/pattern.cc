// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/pattern/pattern.h"

#include <array>
#include <string>
#include <utility>

#include "base/error_ids.h"
#include "text/grammar/pattern/parse.h"

namespace belay::text {
namespace {

constexpr size_t kMaxNodes = 20000;

// Thompson's construction (1968).
class Compiler {
 public:
  PatternNfa Run(const std::vector<PatternBranch>& branches) {
    const uint32_t start = NewNode();
    nfa_.accept = NewNode();
    const uint32_t any = SetOf(AllCodePoints());
    for (const PatternBranch& branch : branches) {
      uint32_t node = NewNode();
      Empty(start, node);
      if (!branch.from_start) Step(node, any, node);
      node = Add(branch.tree, node);
      if (!branch.to_end) {
        const uint32_t tail = NewNode();
        Empty(node, tail);
        Step(tail, any, tail);
        node = tail;
      }
      Empty(node, nfa_.accept);
    }
    return std::move(nfa_);
  }
  bool is_full() const { return nfa_.nodes.size() >= kMaxNodes; }

 private:
  uint32_t NewNode() {
    if (is_full()) return 0;
    nfa_.nodes.emplace_back();
    return static_cast<uint32_t>(nfa_.nodes.size() - 1);
  }
  uint32_t SetOf(const CodePointSet& set) {
    for (uint32_t i = 0; i < nfa_.sets.size(); ++i) {
      if (nfa_.sets[i] == set) return i;
    }
    nfa_.sets.push_back(set);
    return static_cast<uint32_t>(nfa_.sets.size() - 1);
  }
  void Step(uint32_t from, uint32_t set, uint32_t to) {
    nfa_.nodes[from].steps.push_back({.set = set, .to = to});
  }
  void Empty(uint32_t from, uint32_t to) {
    nfa_.nodes[from].empty.push_back(to);
  }

  // The node after `tree`, from `from`.
  uint32_t Add(const PatternTree& tree, uint32_t from) {
    if (is_full()) return from;
    switch (tree.kind) {
      case PatternTree::Kind::kSet: {
        const uint32_t to = NewNode();
        Step(from, SetOf(tree.set), to);
        return to;
      }
      case PatternTree::Kind::kSequence:
        for (const PatternTree& part : tree.parts) from = Add(part, from);
        return from;
      case PatternTree::Kind::kChoice: {
        const uint32_t to = NewNode();
        for (const PatternTree& part : tree.parts) Empty(Add(part, from), to);
        return to;
      }
      case PatternTree::Kind::kRepeat:
        return AddRepeat(tree, from);
    }
    return from;
  }

  uint32_t AddRepeat(const PatternTree& tree, uint32_t from) {
    const PatternTree& part = tree.parts[0];
    for (uint32_t i = 0; i < tree.min && !is_full(); ++i) {
      from = Add(part, from);
    }
    const uint32_t to = NewNode();
    if (tree.max == kPatternUnlimited) {
      const uint32_t loop = NewNode();
      Empty(from, loop);
      Empty(Add(part, loop), loop);
      Empty(loop, to);
      return to;
    }
    for (uint32_t i = tree.min; i < tree.max && !is_full(); ++i) {
      Empty(from, to);
      // A node of its own: `from` may be the start of a loop.
      const uint32_t next = NewNode();
      Empty(from, next);
      from = Add(part, next);
    }
    Empty(from, to);
    return to;
  }

  PatternNfa nfa_;
};

struct Format {
  std::string_view name;
  std::string_view pattern;
};
// Narrower than the formats where these need arithmetic: no 29 February, no
// leap second.
constexpr std::array<Format, 7> kFormats = {{
    {"date",
     R"(^\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))$)"},
    {"time",
     R"(^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$)"},
    {"date-time",
     R"(^\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$)"},
    {"uuid",
     R"(^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$)"},
    {"ipv4",
     R"(^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$)"},
    {"email",
     R"(^[A-Za-z0-9_+-]{1,30}(\.[A-Za-z0-9_+-]{1,20}){0,2}@[A-Za-z0-9]([A-Za-z0-9-]{0,28}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,28}[A-Za-z0-9])?){1,3}$)"},
    {"hostname",
     R"(^[A-Za-z0-9]([A-Za-z0-9-]{0,60}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,60}[A-Za-z0-9])?){0,2}$)"},
}};

}  // namespace

StatusOr<PatternNfa> CompilePattern(std::string_view pattern,
                                    std::string_view where) {
  BELAY_ASSIGN_OR_RETURN(const auto branches, ParsePattern(pattern, where));
  Compiler compiler;
  PatternNfa nfa = compiler.Run(branches);
  if (nfa.nodes.size() >= kMaxNodes) {
    return MakeError(kGramTooLarge,
                     {.where = std::string(where),
                      .what = "pattern",
                      .expected = "< " + std::to_string(kMaxNodes) + " nodes",
                      .got = ""});
  }
  return nfa;
}

std::optional<std::string_view> PatternOfFormat(std::string_view format) {
  for (const Format& known : kFormats) {
    if (known.name == format) return known.pattern;
  }
  return std::nullopt;
}

}  // namespace belay::text
