// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/code_points.h"

#include <algorithm>
#include <array>
#include <span>

#include "text/chat/json.h"

namespace belay::text {
namespace {

constexpr CodePointRange kSurrogates = {0xd800, 0xdfff};

// All code points of one length in UTF-8, without surrogates.
constexpr std::array<CodePointRange, 5> kLengths = {{{0, 0x7f},
                                                     {0x80, 0x7ff},
                                                     {0x800, 0xd7ff},
                                                     {0xe000, 0xffff},
                                                     {0x10000, 0x10ffff}}};

std::string Utf8(uint32_t c) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  const auto tail = [&](int shift) { return byte(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), tail(0)};
  if (c < 0x10000) return {byte(0xe0 | c >> 12), tail(6), tail(0)};
  return {byte(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

struct Utf8Range {
  std::string first;
  std::string last;  // as long
};

// Edges for all byte sequences from `first` to `last` whose bytes behind the
// first are continuation bytes.
void AddSequences(GrammarBuilder& builder, GrammarNode from, Utf8Range range,
                  GrammarNode to) {
  auto low = static_cast<uint8_t>(range.first[0]);
  auto high = static_cast<uint8_t>(range.last[0]);
  if (range.first.size() == 1) {
    builder.Bytes(from, low, high, to);
    return;
  }
  const std::string low_rest = range.first.substr(1);
  const std::string high_rest = range.last.substr(1);
  const std::string lowest(low_rest.size(), '\x80');
  const std::string highest(low_rest.size(), '\xbf');
  const auto branch = [&](uint8_t a, uint8_t b, const std::string& first,
                          const std::string& last) {
    const GrammarNode next = builder.NewNode();
    builder.Bytes(from, a, b, next);
    AddSequences(builder, next, {first, last}, to);
  };
  if (low == high) return branch(low, low, low_rest, high_rest);
  if (low_rest != lowest) {
    branch(low, low, low_rest, highest);
    ++low;
  }
  if (high_rest != highest) {
    branch(high, high, lowest, high_rest);
    --high;
  }
  if (low <= high) branch(low, high, lowest, highest);
}

void AddRange(GrammarBuilder& builder, GrammarNode from, CodePointRange range,
              GrammarNode to) {
  for (const CodePointRange& length : kLengths) {
    const uint32_t first = std::max(range.first, length.first);
    const uint32_t last = std::min(range.last, length.last);
    if (first > last) continue;
    AddSequences(builder, from, {Utf8(first), Utf8(last)}, to);
  }
}

// What a JSON string has as an escape, in order.
std::vector<uint32_t> Escaped() {
  std::vector<uint32_t> all;
  for (uint32_t c = 0; c < 0x20; ++c) all.push_back(c);
  all.insert(all.end(), {'"', '\\', kMarkerBar});
  return all;
}

}  // namespace

CodePointSet Normalize(CodePointSet set) {
  std::sort(set.begin(), set.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  CodePointSet merged;
  for (const CodePointRange& range : set) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  CodePointSet out;
  for (const CodePointRange& range : merged) {
    if (range.first < kSurrogates.first) {
      out.push_back({range.first, std::min(range.last, kSurrogates.first - 1)});
    }
    if (range.last > kSurrogates.last) {
      out.push_back({std::max(range.first, kSurrogates.last + 1), range.last});
    }
  }
  return out;
}

CodePointSet Complement(const CodePointSet& set) {
  CodePointSet out;
  uint32_t next = 0;
  for (const CodePointRange& range : set) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) out.push_back({next, kLastCodePoint});
  return Normalize(std::move(out));
}

CodePointSet AllCodePoints() { return Complement({}); }

void AddCharacters(GrammarBuilder& builder, GrammarNode from,
                   const CodePointSet& set, TextForm form, GrammarNode to) {
  for (const CodePointRange& range : set) {
    if (form == TextForm::kPlain) {
      AddRange(builder, from, range, to);
      continue;
    }
    uint32_t first = range.first;
    for (const uint32_t c : Escaped()) {
      if (c < range.first || c > range.last) continue;
      if (first < c) AddRange(builder, from, {first, c - 1}, to);
      first = c + 1;
      const std::string escape = WrittenAs(Utf8(c), form);
      const GrammarNode last = builder.Literal(
          from, std::string_view(escape).substr(0, escape.size() - 1));
      const auto byte = static_cast<uint8_t>(escape.back());
      builder.Bytes(last, byte, byte, to);
    }
    if (first <= range.last) AddRange(builder, from, {first, range.last}, to);
  }
}

std::string WrittenAs(std::string_view text, TextForm form) {
  if (form == TextForm::kPlain) return std::string(text);
  std::string out;
  AppendJsonEscaped(text, &out);
  return EscapeBars(std::move(out));
}

std::string EscapeBars(std::string json) {
  const std::string bar = Utf8(kMarkerBar);
  for (size_t at = 0; (at = json.find(bar, at)) != std::string::npos;) {
    json.replace(at, bar.size(), "\\uff5c");
  }
  return json;
}

void AddAnyJsonCharacter(GrammarBuilder& builder, GrammarNode from,
                         GrammarNode to) {
  const CodePointSet plain = Complement(Normalize(
      {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {kMarkerBar, kMarkerBar}}));
  AddCharacters(builder, from, plain, TextForm::kPlain, to);
  const GrammarNode escape = builder.Literal(from, "\\");
  for (const char c : std::string_view("\"\\/bfnrt")) {
    builder.Bytes(escape, static_cast<uint8_t>(c), static_cast<uint8_t>(c), to);
  }
  using Digits = std::span<const std::array<uint8_t, 2>>;
  static constexpr std::array<std::array<uint8_t, 2>, 3> kHex = {
      {{'0', '9'}, {'a', 'f'}, {'A', 'F'}}};
  static constexpr std::array<std::array<uint8_t, 2>, 3> kNotD = {
      {{'0', '9'}, {'a', 'c'}, {'A', 'C'}}};
  static constexpr std::array<std::array<uint8_t, 2>, 2> kEf = {
      {{'e', 'f'}, {'E', 'F'}}};
  static constexpr std::array<std::array<uint8_t, 2>, 2> kD = {
      {{'d', 'd'}, {'D', 'D'}}};
  static constexpr std::array<std::array<uint8_t, 2>, 1> kTo7 = {{{'0', '7'}}};
  static constexpr std::array<std::array<uint8_t, 2>, 3> kHighHalf = {
      {{'8', '9'}, {'a', 'b'}, {'A', 'B'}}};
  static constexpr std::array<std::array<uint8_t, 2>, 2> kLowHalf = {
      {{'c', 'f'}, {'C', 'F'}}};
  const auto digits = [&](GrammarNode a, Digits set, GrammarNode b) {
    for (const auto& [first, last] : set) builder.Bytes(a, first, last, b);
  };
  const auto hex_to = [&](GrammarNode a, int n, GrammarNode b) {
    for (; n > 1; --n) {
      const GrammarNode next = builder.NewNode();
      digits(a, kHex, next);
      a = next;
    }
    digits(a, kHex, b);
  };
  // \uXXXX that is no surrogate.
  const GrammarNode u = builder.Literal(escape, "u");
  const GrammarNode three = builder.NewNode();
  digits(u, kNotD, three);
  digits(u, kEf, three);
  hex_to(three, 3, to);
  const GrammarNode d = builder.NewNode();
  digits(u, kD, d);
  const GrammarNode two = builder.NewNode();
  digits(d, kTo7, two);
  hex_to(two, 2, to);
  // \uD8XX\uDCXX, a pair.
  const GrammarNode high = builder.NewNode();
  digits(d, kHighHalf, high);
  const GrammarNode after = builder.NewNode();
  hex_to(high, 2, after);
  const GrammarNode second = builder.Literal(after, "\\u");
  const GrammarNode d2 = builder.NewNode();
  digits(second, kD, d2);
  const GrammarNode low = builder.NewNode();
  digits(d2, kLowHalf, low);
  hex_to(low, 2, to);
}

}  // namespace belay::text
