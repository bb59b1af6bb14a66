// SPDX-License-Identifier: Apache-2.0
#include "text/split/regex_translate.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/error_ids.h"
#include "text/split/unicode.h"

namespace belay::text {
namespace {

constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

// Groups that mean the same in both.
constexpr std::string_view kGroups[] = {"(?:",  "(?=",  "(?!",
                                        "(?<=", "(?<!", "(?>"};

// The code points of a set as the inside of a PCRE2 class.
template <typename Predicate>
std::string Ranges(Predicate in_set) {
  std::string text;
  for (uint32_t c = 0; c < kNumCodePoints; ++c) {
    if (!in_set(c)) continue;
    const uint32_t first = c;
    while (c + 1 < kNumCodePoints && in_set(c + 1)) ++c;
    char range[40];
    std::snprintf(range, sizeof(range), "\\x{%X}-\\x{%X}", first, c);
    text += range;
  }
  return text;
}

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view where)
      : pattern_(pattern), where_(where) {}

  StatusOr<std::string> Run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '[') {
        BELAY_RETURN_IF_ERROR(Class());
      } else if (c == '\\') {
        BELAY_RETURN_IF_ERROR(Escape(/*in_class=*/false));
      } else {
        BELAY_RETURN_IF_ERROR(Plain());
      }
    }
    return std::move(out_);
  }

 private:
  Status Refuse(std::string_view what) const {
    return MakeError(kTokBadPattern,
                     {.where = std::string(where_),
                      .what = "at byte " + std::to_string(at_) + " of " +
                              std::string(pattern_),
                      .expected = "a pattern of DeepSeek's kind",
                      .got = std::string(what)});
  }

  bool LooksAt(std::string_view text) const {
    return pattern_.substr(at_, text.size()) == text;
  }

  // One character outside of classes and escapes.
  Status Plain() {
    const char c = pattern_[at_];
    if (c == '^' || c == '$') return Refuse("an anchor");
    if (LooksAt("{,")) return Refuse("a repeat without a lower bound");
    if (LooksAt("}+")) return Refuse("a repeat of a repeat");
    if (LooksAt("(*")) return Refuse("a verb");
    if (LooksAt("(?")) {
      for (const std::string_view group : kGroups) {
        if (!LooksAt(group)) continue;
        out_ += group;
        at_ += group.size();
        return absl::OkStatus();
      }
      return Refuse("a group with flags or a name");
    }
    Copy(c);
    return absl::OkStatus();
  }

  void Copy(char c) {
    ++at_;
    // So that both spellings of a pattern give the same.
    if (c == '\r' || c == '\n' || c == '\t') {
      out_ += c == '\r' ? "\\r" : c == '\n' ? "\\n" : "\\t";
    } else {
      out_ += c;
    }
  }

  Status Class() {
    Copy('[');
    if (LooksAt("^")) Copy('^');
    if (LooksAt("]")) return Refuse("an empty class");
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      const char c = pattern_[at_];
      if (c == '[') return Refuse("a class inside a class");
      if (LooksAt("&&")) return Refuse("a class intersection");
      if (c != '\\') {
        Copy(c);
        continue;
      }
      BELAY_RETURN_IF_ERROR(Escape(/*in_class=*/true));
    }
    if (at_ == pattern_.size()) return Refuse("a class without end");
    Copy(']');
    return absl::OkStatus();
  }

  Status Escape(bool in_class) {
    if (at_ + 1 == pattern_.size()) return Refuse("a backslash at the end");
    const char c = pattern_[at_ + 1];
    if (c == 'r' || c == 'n' || c == 't' ||
        kPunctuation.find(c) != std::string_view::npos) {
      out_ += pattern_.substr(at_, 2);
      at_ += 2;
      return absl::OkStatus();
    }
    if (c == 's' || c == 'S') {
      at_ += 2;
      return Set([c](char32_t p) { return IsWhiteSpace(p) == (c == 's'); },
                 in_class);
    }
    if (c == 'd' || c == 'D') {
      at_ += 2;
      return Categories(1u << kNd, c == 'D', in_class);
    }
    if (c == 'p' || c == 'P') return Property(c == 'P', in_class);
    return Refuse("\\" + std::string(1, c));
  }

  // \p{L}, \p{Lu}, \P{L}, for general categories.
  Status Property(bool negated, bool in_class) {
    const size_t close = pattern_.find('}', at_);
    const std::string_view name =
        close == std::string_view::npos || pattern_[at_ + 2] != '{'
            ? std::string_view()
            : pattern_.substr(at_ + 3, close - at_ - 3);
    const uint32_t mask = CategoryMask(name);
    if (mask == 0) return Refuse("a property other than a general category");
    at_ = close + 1;
    return Categories(mask, negated, in_class);
  }

  Status Categories(uint32_t mask, bool negated, bool in_class) {
    if (categories_.empty()) {
      categories_.resize(kNumCodePoints);
      const auto runs = CategoryRuns();
      for (size_t i = 0; i < runs.size(); ++i) {
        const uint32_t last =
            i + 1 < runs.size() ? runs[i + 1].first : kNumCodePoints;
        for (uint32_t c = runs[i].first; c < last; ++c) {
          categories_[c] = runs[i].category;
        }
      }
    }
    return Set(
        [this, mask, negated](uint32_t c) {
          return ((mask >> categories_[c] & 1) != 0) != negated;
        },
        in_class);
  }

  // Writes a set; it must not be an end of a range ("\s-x").
  template <typename Predicate>
  Status Set(Predicate in_set, bool in_class) {
    if (in_class && LooksAt("-") && pattern_.substr(at_ + 1, 1) != "]") {
      return Refuse("a range that starts with a set");
    }
    if (in_class && !out_.empty() && out_.back() == '-') {
      return Refuse("a range that ends with a set");
    }
    const auto usable = [&in_set](uint32_t c) {
      return (c < 0xD800 || c > 0xDFFF) && in_set(c);  // no surrogates in UTF
    };
    const std::string ranges = Ranges(usable);
    out_ += in_class ? ranges : "[" + ranges + "]";
    return absl::OkStatus();
  }

  std::string_view pattern_;
  std::string_view where_;
  size_t at_ = 0;
  std::string out_;
  std::vector<uint8_t> categories_;  // by code point; filled when needed
};

}  // namespace

StatusOr<std::string> TranslateRegex(std::string_view pattern,
                                     std::string_view where) {
  return Translator(pattern, where).Run();
}

}  // namespace belay::text
