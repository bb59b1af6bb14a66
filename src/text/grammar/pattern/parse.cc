// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/pattern/parse.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error_ids.h"

namespace belay::text {
namespace {

constexpr int kMaxGroups = 64;          // one inside the other
constexpr uint32_t kMaxRepeats = 1000;  // in {m,n}

const CodePointSet& Digits() {
  static const CodePointSet set = {{'0', '9'}};
  return set;
}
const CodePointSet& WordCharacters() {
  static const CodePointSet set =
      Normalize({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}});
  return set;
}
// WhiteSpace and LineTerminator of ECMA-262.
const CodePointSet& Spaces() {
  static const CodePointSet set = Normalize({{'\t', '\r'},
                                             {' ', ' '},
                                             {0xa0, 0xa0},
                                             {0x1680, 0x1680},
                                             {0x2000, 0x200a},
                                             {0x2028, 0x2029},
                                             {0x202f, 0x202f},
                                             {0x205f, 0x205f},
                                             {0x3000, 0x3000},
                                             {0xfeff, 0xfeff}});
  return set;
}
const CodePointSet& LineEnds() {
  static const CodePointSet set =
      Normalize({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
  return set;
}

CodePointSet One(uint32_t c) { return {{c, c}}; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Parser {
 public:
  Parser(std::string_view pattern, std::string_view where)
      : text_(pattern), where_(where) {}

  StatusOr<std::vector<PatternBranch>> Parse() {
    std::vector<PatternBranch> branches;
    do {
      PatternBranch branch;
      branch.from_start = Take('^');
      BELAY_ASSIGN_OR_RETURN(branch.tree, Sequence(0));
      branch.to_end = Take('$');
      branches.push_back(std::move(branch));
    } while (Take('|'));
    if (!AtEnd()) return Bad("'$' inside, or an unmatched ')'");
    return branches;
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  bool Sees(char c) const { return !AtEnd() && text_[at_] == c; }
  bool Take(char c) {
    if (!Sees(c)) return false;
    ++at_;
    return true;
  }
  bool Take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Status Bad(std::string what) const {
    return MakeError(kGramPattern,
                     {.where = where_,
                      .what = std::move(what) + " at byte " +
                              std::to_string(std::min(at_, text_.size())),
                      .expected = "",
                      .got = std::string(text_.substr(0, 200))});
  }

  // The next character of the pattern, which is UTF-8 (the JSON was).
  uint32_t Character() {
    const auto lead = static_cast<uint8_t>(text_[at_++]);
    if (lead < 0x80) return lead;
    const int n = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    uint32_t c = lead & (0x3fu >> n);
    for (int i = 0; i < n && !AtEnd(); ++i) {
      c = c << 6 | (static_cast<uint8_t>(text_[at_++]) & 0x3f);
    }
    return c;
  }

  StatusOr<PatternTree> Choice(int depth) {
    PatternTree tree;
    tree.kind = PatternTree::Kind::kChoice;
    do {
      BELAY_ASSIGN_OR_RETURN(PatternTree part, Sequence(depth));
      tree.parts.push_back(std::move(part));
    } while (Take('|'));
    return tree;
  }

  StatusOr<PatternTree> Sequence(int depth) {
    PatternTree tree;
    while (!AtEnd() && !Sees('|') && !Sees(')') && !Sees('$')) {
      BELAY_ASSIGN_OR_RETURN(PatternTree atom, Atom(depth));
      BELAY_ASSIGN_OR_RETURN(atom, Quantified(std::move(atom)));
      tree.parts.push_back(std::move(atom));
    }
    return tree;
  }

  StatusOr<PatternTree> Atom(int depth) {
    PatternTree tree;
    tree.kind = PatternTree::Kind::kSet;
    if (Take('(')) return Group(depth);
    if (Take('[')) {
      BELAY_ASSIGN_OR_RETURN(tree.set, Class());
      return tree;
    }
    if (Take('.')) {
      tree.set = Complement(LineEnds());
      return tree;
    }
    if (Take('\\')) {
      BELAY_ASSIGN_OR_RETURN(tree.set, Escape(false));
      return tree;
    }
    if (Sees('^')) return Bad("'^' inside the pattern");
    if (Sees('*') || Sees('+') || Sees('?') || Sees('{')) {
      return Bad("a quantifier with nothing before it");
    }
    tree.set = One(Character());
    return tree;
  }

  StatusOr<PatternTree> Group(int depth) {
    if (depth >= kMaxGroups) return Bad("groups nested too deep");
    if (Sees('?') && !Take("?:")) {
      if (!text_.substr(at_).starts_with("?<") ||
          text_.substr(at_).starts_with("?<=") ||
          text_.substr(at_).starts_with("?<!")) {
        return Bad("look-around");
      }
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) return Bad("'(?<' without '>'");
      at_ = end + 1;
    }
    BELAY_ASSIGN_OR_RETURN(PatternTree tree, Choice(depth + 1));
    if (Sees('$')) return Bad("'$' inside a group");
    if (!Take(')')) return Bad("'(' without ')'");
    return tree;
  }

  std::optional<uint32_t> Number() {
    uint32_t value = 0;
    const size_t begin = at_;
    while (!AtEnd() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = std::min(kMaxRepeats + 1,
                       value * 10 + static_cast<uint32_t>(text_[at_++] - '0'));
    }
    return at_ > begin ? std::optional(value) : std::nullopt;
  }

  StatusOr<PatternTree> Quantified(PatternTree atom) {
    uint32_t min = 0;
    uint32_t max = kPatternUnlimited;
    if (Take('+')) {
      min = 1;
    } else if (Take('?')) {
      max = 1;
    } else if (Take('{')) {
      const auto first = Number();
      if (!first) return Bad("'{' without a number");
      min = max = *first;
      if (Take(',')) max = Number().value_or(kPatternUnlimited);
      if (!Take('}')) return Bad("'{' without '}'");
      if (min > max) return Bad("a quantifier out of order");
      if (min > kMaxRepeats ||
          (max != kPatternUnlimited && max > kMaxRepeats)) {
        return Bad("more than 1000 repetitions");
      }
    } else if (!Take('*')) {
      return atom;
    }
    Take('?');  // lazy: the same texts
    if (Sees('+') || Sees('*') || Sees('?') || Sees('{')) {
      return Bad("a quantifier of a quantifier");
    }
    PatternTree tree;
    tree.kind = PatternTree::Kind::kRepeat;
    tree.min = min;
    tree.max = max;
    tree.parts.push_back(std::move(atom));
    return tree;
  }

  StatusOr<uint32_t> Hex(int n_digits) {
    uint32_t value = 0;
    for (int i = 0; i < n_digits; ++i) {
      const int digit = AtEnd() ? -1 : HexValue(text_[at_]);
      if (digit < 0) return Bad("a hexadecimal escape that is too short");
      value = value * 16 + static_cast<uint32_t>(digit);
      ++at_;
    }
    return value;
  }

  StatusOr<uint32_t> UnicodeEscape() {
    if (Take('{')) {
      uint32_t value = 0;
      while (!AtEnd() && HexValue(text_[at_]) >= 0 && value <= kLastCodePoint) {
        value = value * 16 + static_cast<uint32_t>(HexValue(text_[at_++]));
      }
      if (!Take('}') || value > kLastCodePoint) return Bad("a bad \\u{...}");
      return value;
    }
    BELAY_ASSIGN_OR_RETURN(const uint32_t high, Hex(4));
    if (high < 0xd800 || high > 0xdbff || !Take("\\u")) return high;
    BELAY_ASSIGN_OR_RETURN(const uint32_t low, Hex(4));
    if (low < 0xdc00 || low > 0xdfff) return Bad("half of a surrogate pair");
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  }

  // Behind the backslash.
  StatusOr<CodePointSet> Escape(bool in_class) {
    if (AtEnd()) return Bad("'\\' at the end");
    const char c = text_[at_];
    const auto at = std::string_view("tnrfv").find(c);
    if (at != std::string_view::npos) {
      ++at_;
      return One(static_cast<uint32_t>("\t\n\r\f\v"[at]));
    }
    if (std::string_view("^$\\.*+?()[]{}|/-\"'#&!%,:;<=>@`~ _").find(c) !=
        std::string_view::npos) {
      ++at_;
      return One(static_cast<uint32_t>(c));
    }
    switch (c) {
      case 'd':
        return ++at_, Digits();
      case 'D':
        return ++at_, Complement(Digits());
      case 'w':
        return ++at_, WordCharacters();
      case 'W':
        return ++at_, Complement(WordCharacters());
      case 's':
        return ++at_, Spaces();
      case 'S':
        return ++at_, Complement(Spaces());
      case 'x':
      case 'u': {
        ++at_;
        BELAY_ASSIGN_OR_RETURN(const uint32_t value,
                               c == 'x' ? Hex(2) : UnicodeEscape());
        return One(value);
      }
      case 'b':
        if (in_class) return ++at_, One('\b');
        break;
      default:
        break;
    }
    return Bad(std::string("the escape '\\") + c + "'");
  }

  StatusOr<CodePointSet> ClassAtom() {
    if (Take('\\')) return Escape(true);
    return One(Character());
  }

  // Behind the "[".
  StatusOr<CodePointSet> Class() {
    const bool negated = Take('^');
    CodePointSet set;
    while (!Sees(']')) {
      if (AtEnd()) return Bad("'[' without ']'");
      BELAY_ASSIGN_OR_RETURN(CodePointSet first, ClassAtom());
      const bool is_range =
          Sees('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!is_range) {
        set.insert(set.end(), first.begin(), first.end());
        continue;
      }
      ++at_;
      BELAY_ASSIGN_OR_RETURN(const CodePointSet last, ClassAtom());
      if (first.size() != 1 || last.size() != 1 ||
          first[0].first != first[0].last || last[0].first != last[0].last ||
          first[0].first > last[0].first) {
        return Bad("a range of a class");
      }
      set.push_back({first[0].first, last[0].first});
    }
    ++at_;
    set = Normalize(std::move(set));
    return negated ? Complement(set) : set;
  }

  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

}  // namespace

StatusOr<std::vector<PatternBranch>> ParsePattern(std::string_view pattern,
                                                  std::string_view where) {
  return Parser(pattern, where).Parse();
}

}  // namespace belay::text
