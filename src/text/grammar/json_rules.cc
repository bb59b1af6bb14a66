// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/json_rules.h"

#include <algorithm>
#include <utility>

#include "text/chat/json.h"
#include "text/grammar/number_range.h"

namespace belay::text {
namespace {

constexpr int kMaxIndentBlanks = 40;
constexpr int kMaxIndentTabs = 16;

}  // namespace

CodePointSet PlainCharacters() {
  return Complement(Normalize({{0, 8},
                               {0xb, 0xc},
                               {0xe, 0x1f},
                               {0x7f, 0x7f},
                               {kMarkerBar, kMarkerBar}}));
}

GrammarRule JsonRules::Space() {
  if (space_) return *space_;
  space_ = builder_.NewRule();
  const GrammarNode from = builder_.start(*space_);
  const GrammarNode to = builder_.end(*space_);
  builder_.Empty(from, to);
  builder_.Bytes(from, ' ', ' ', to);
  const GrammarNode line = builder_.Literal(from, "\n");
  builder_.Empty(line, to);
  const auto indent = [&](char c, int n) {
    GrammarNode node = line;
    for (int i = 0; i < n; ++i) {
      node = builder_.Literal(node, std::string_view(&c, 1));
      builder_.Empty(node, to);
    }
  };
  indent(' ', kMaxIndentBlanks);
  indent('\t', kMaxIndentTabs);
  return *space_;
}

GrammarRule JsonRules::Character(TextForm form) {
  auto& rule = form == TextForm::kPlain ? plain_character_ : json_character_;
  if (rule) return *rule;
  rule = builder_.NewRule();
  if (form == TextForm::kPlain) {
    AddCharacters(builder_, builder_.start(*rule), PlainCharacters(), form,
                  builder_.end(*rule));
  } else {
    AddAnyJsonCharacter(builder_, builder_.start(*rule), builder_.end(*rule));
  }
  return *rule;
}

GrammarRule JsonRules::AnyString() {
  if (string_) return *string_;
  string_ = builder_.NewRule();
  const GrammarNode inside = builder_.Literal(builder_.start(*string_), "\"");
  // In place and not by a call: most tokens end here.
  AddAnyJsonCharacter(builder_, inside, inside);
  builder_.Bytes(inside, '"', '"', builder_.end(*string_));
  return *string_;
}

GrammarRule JsonRules::AnyNumber(bool integer) {
  auto& rule = integer ? integer_ : number_;
  if (!rule) {
    rule = AddNumbers(
        builder_,
        {.low = std::nullopt, .high = std::nullopt, .integer = integer});
  }
  return *rule;
}

GrammarRule JsonRules::Fixed(std::string_view text) {
  const GrammarRule rule = builder_.NewRule();
  AddOneOf(builder_.start(rule), {std::string(text)}, builder_.end(rule));
  return rule;
}

GrammarRule JsonRules::AnyValue() {
  if (value_) return *value_;
  value_ = builder_.NewRule();
  const GrammarNode from = builder_.start(*value_);
  const GrammarNode to = builder_.end(*value_);
  AddOneOf(from, {"true", "false", "null"}, to);
  for (const GrammarRule rule :
       {AnyString(), AnyNumber(false), AnyObject(), AnyArray()}) {
    builder_.Call(from, rule, to);
  }
  return *value_;
}

GrammarRule JsonRules::AnyObject() {
  if (object_) return *object_;
  object_ = builder_.NewRule();  // known before its values ask for it
  builder_.Call(builder_.start(*object_), Object({}, AnyValue()),
                builder_.end(*object_));
  return *object_;
}

GrammarRule JsonRules::AnyArray() {
  if (array_) return *array_;
  array_ = builder_.NewRule();
  builder_.Call(builder_.start(*array_), Array({}, AnyValue(), {}),
                builder_.end(*array_));
  return *array_;
}

GrammarRule JsonRules::Member(GrammarRule key, GrammarRule value) {
  const GrammarRule rule = builder_.NewRule();
  GrammarNode node = builder_.Call(builder_.start(rule), key);
  node = builder_.Literal(node, ":");
  node = builder_.Call(node, Space());
  builder_.Call(node, value, builder_.end(rule));
  return rule;
}

GrammarRule JsonRules::Quoted(std::string_view name) {
  return Fixed("\"" + WrittenAs(name, TextForm::kJsonString) + "\"");
}

GrammarRule JsonRules::Object(std::span<const ObjectMember> members,
                              std::optional<GrammarRule> additional) {
  const GrammarRule rule = builder_.NewRule();
  // Two rows of nodes: no member written so far, and some written.
  GrammarNode none = builder_.Literal(builder_.start(rule), "{");
  GrammarNode some = builder_.NewNode();
  const auto separated = [&] {
    return builder_.Call(builder_.Literal(some, ","), Space());
  };
  for (const ObjectMember& member : members) {
    if (builder_.is_full()) return rule;
    const GrammarRule body = Member(Quoted(member.name), member.value);
    const GrammarNode next_some = builder_.NewNode();
    builder_.Call(builder_.Call(none, Space()), body, next_some);
    builder_.Call(separated(), body, next_some);
    const GrammarNode next_none = builder_.NewNode();
    if (!member.required) {
      builder_.Empty(none, next_none);
      builder_.Empty(some, next_some);
    }
    none = next_none;
    some = next_some;
  }
  if (additional) {
    const GrammarRule body = Member(OtherKey(members), *additional);
    builder_.Call(builder_.Call(none, Space()), body, some);
    builder_.Call(separated(), body, some);
  }
  for (const GrammarNode node : {none, some}) {
    const GrammarNode last = builder_.Call(node, Space());
    builder_.Bytes(last, '}', '}', builder_.end(rule));
  }
  return rule;
}

namespace {

// The characters of names as a tree.
struct NameTree {
  uint32_t character = 0;  // that leads here
  std::vector<NameTree> children;
  bool is_name = false;

  void Add(std::string_view rest) {
    if (rest.empty()) {
      is_name = true;
      return;
    }
    const auto lead = static_cast<uint8_t>(rest[0]);
    const size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? lead : lead & (0xffu >> (n + 1));
    for (size_t i = 1; i < n && i < rest.size(); ++i) {
      c = c << 6 | (static_cast<uint8_t>(rest[i]) & 0x3f);
    }
    rest.remove_prefix(std::min(n, rest.size()));
    for (NameTree& child : children) {
      if (child.character == c) return child.Add(rest);
    }
    children.emplace_back().character = c;
    children.back().Add(rest);
  }
};

struct OtherKeyNodes {
  GrammarNode free = 0;  // no name any more
  GrammarNode end = 0;
};

// Edges for all keys but the names below `tree`. Next to a name only plain
// characters: an escape could spell the name after all.
void AddOthers(GrammarBuilder& builder, GrammarNode from, const NameTree& tree,
               const OtherKeyNodes& nodes) {
  CodePointSet taken = {
      {0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {kMarkerBar, kMarkerBar}};
  for (const NameTree& child : tree.children) {
    const uint32_t c = child.character;
    taken.push_back({c, c});
    const GrammarNode next = builder.NewNode();
    AddCharacters(builder, from, {{c, c}}, TextForm::kJsonString, next);
    AddOthers(builder, next, child, nodes);
  }
  AddCharacters(builder, from, Complement(Normalize(std::move(taken))),
                TextForm::kPlain, nodes.free);
  if (!tree.is_name) builder.Bytes(from, '"', '"', nodes.end);
}

}  // namespace

GrammarRule JsonRules::OtherKey(std::span<const ObjectMember> members) {
  if (members.empty()) return AnyString();
  NameTree tree;
  for (const ObjectMember& member : members) {
    // Deeper trees would be deep recursion; such a name is only refused.
    if (member.name.size() <= 1000) tree.Add(member.name);
  }
  const GrammarRule rule = builder_.NewRule();
  const OtherKeyNodes nodes = {builder_.NewNode(), builder_.end(rule)};
  builder_.Call(nodes.free, Character(TextForm::kJsonString), nodes.free);
  builder_.Bytes(nodes.free, '"', '"', nodes.end);
  AddOthers(builder_, builder_.Literal(builder_.start(rule), "\""), tree,
            nodes);
  return rule;
}

GrammarRule JsonRules::Array(std::span<const GrammarRule> first,
                             std::optional<GrammarRule> rest,
                             LengthRange length) {
  const GrammarRule rule = builder_.NewRule();
  GrammarNode node = builder_.Literal(builder_.start(rule), "[");
  const GrammarNode last = builder_.NewNode();
  const GrammarNode close = builder_.Call(last, Space());
  builder_.Bytes(close, ']', ']', builder_.end(rule));
  if (length.min == 0) builder_.Empty(node, last);
  const size_t n_unrolled = length.max.value_or(std::max<uint32_t>(
      {length.min, static_cast<uint32_t>(first.size()), 1u}));
  for (size_t i = 0; i < n_unrolled && !builder_.is_full(); ++i) {
    if (i >= first.size() && !rest) return rule;
    if (i > 0) node = builder_.Literal(node, ",");
    node = builder_.Call(node, Space());
    node = builder_.Call(node, i < first.size() ? first[i] : *rest);
    if (i + 1 >= length.min) builder_.Empty(node, last);
  }
  if (!length.max && rest) {
    const GrammarNode comma = builder_.Literal(node, ",");
    builder_.Call(builder_.Call(comma, Space()), *rest, node);
  }
  return rule;
}

void JsonRules::AddText(GrammarNode from, TextForm form, LengthRange length,
                        GrammarNode to) {
  const GrammarRule character = Character(form);
  const uint32_t n = length.max.value_or(length.min);
  for (uint32_t i = 0; i < n && !builder_.is_full(); ++i) {
    if (i >= length.min) builder_.Empty(from, to);
    from = builder_.Call(from, character);
  }
  builder_.Empty(from, to);
  if (!length.max) {
    const GrammarNode loop = builder_.NewNode();
    builder_.Call(from, character, loop);
    builder_.Call(loop, character, loop);
    builder_.Empty(loop, to);
  }
}

void JsonRules::AddOneOf(GrammarNode from, std::vector<std::string> texts,
                         GrammarNode to) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  std::vector<GrammarNode> path = {from};  // after each byte of the last text
  std::string last;
  for (const std::string& text : texts) {
    const auto ends =
        std::mismatch(last.begin(), last.end(), text.begin(), text.end());
    path.resize(static_cast<size_t>(ends.first - last.begin()) + 1);
    for (size_t i = path.size() - 1; i < text.size(); ++i) {
      path.push_back(builder_.Literal(path.back(), text.substr(i, 1)));
    }
    builder_.Empty(path.back(), to);
    last = text;
  }
}

}  // namespace belay::text
