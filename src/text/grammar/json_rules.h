// SPDX-License-Identifier: Apache-2.0
// Rules for JSON (RFC 8259) without a schema, and the frames of objects and
// arrays with one.
#ifndef BELAY_TEXT_GRAMMAR_JSON_RULES_H_
#define BELAY_TEXT_GRAMMAR_JSON_RULES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/code_points.h"
#include "text/grammar/grammar.h"
#include "text/grammar/pattern/pattern.h"

namespace belay::text {

struct ObjectMember {
  std::string name;  // as characters, not as JSON writes them
  GrammarRule value = 0;
  bool required = false;
};

struct LengthRange {
  uint32_t min = 0;
  std::optional<uint32_t> max;
};

// Rules in one builder; each is made when it is first asked for.
class JsonRules {
 public:
  // `builder` is borrowed.
  explicit JsonRules(GrammarBuilder& builder) : builder_(builder) {}

  GrammarBuilder& builder() { return builder_; }

  // White space between tokens: nothing, a blank, or a new line with at most
  // 40 blanks or 16 tabs. Bounded, so that no model can stay in it.
  GrammarRule Space();

  GrammarRule AnyValue();
  GrammarRule AnyObject();
  GrammarRule AnyArray();
  GrammarRule AnyString();
  GrammarRule AnyNumber(bool integer);
  // A JSON text that is fixed.
  GrammarRule Fixed(std::string_view text);

  // Members in the given order, those that are not required may be missing;
  // behind them any others whose value is `additional`.
  GrammarRule Object(std::span<const ObjectMember> members,
                     std::optional<GrammarRule> additional);

  // `first` are the first items; those behind them are `rest`, or there are
  // none.
  GrammarRule Array(std::span<const GrammarRule> first,
                    std::optional<GrammarRule> rest, LengthRange length);

  // The characters of a text of this length in a form, without quotes: edges
  // between two nodes.
  void AddText(GrammarNode from, TextForm form, LengthRange length,
               GrammarNode to);
  // The same for texts that match.
  void AddMatching(GrammarNode from, const PatternNfa& pattern, TextForm form,
                   LengthRange length, GrammarNode to);

  // One of `texts`; those with a common beginning share its nodes.
  void AddOneOf(GrammarNode from, std::vector<std::string> texts,
                GrammarNode to);

 private:
  GrammarRule Character(TextForm form);
  GrammarRule OtherKey(std::span<const ObjectMember> members);
  GrammarRule Member(GrammarRule key, GrammarRule value);
  GrammarRule Quoted(std::string_view name);

  GrammarBuilder& builder_;
  std::optional<GrammarRule> space_;
  std::optional<GrammarRule> value_;
  std::optional<GrammarRule> object_;
  std::optional<GrammarRule> array_;
  std::optional<GrammarRule> string_;
  std::optional<GrammarRule> number_;
  std::optional<GrammarRule> integer_;
  std::optional<GrammarRule> json_character_;
  std::optional<GrammarRule> plain_character_;
};

// Characters of a plain parameter of a tool call: no control characters but
// tab and the line ends, and not the bar that DSML's tags begin with.
CodePointSet PlainCharacters();

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_JSON_RULES_H_
