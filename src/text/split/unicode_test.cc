// SPDX-License-Identifier: Apache-2.0
#include "text/split/unicode.h"

#include <gtest/gtest.h>

#include <string>

namespace belay::text {
namespace {

// Straight from the definition of UTF-8, and not from the code under test.
std::string EncodeUtf8(uint32_t c) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000) {
    return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)),
            byte(0x80 | (c & 0x3F))};
  }
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)),
          byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
}

TEST(UnicodeTest, EveryCodePointIsOneCharacter) {
  for (uint32_t c = 0; c < kNumCodePoints; ++c) {
    const std::string text = EncodeUtf8(c);
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(IsValidUtf8(text), !surrogate) << std::hex << c;
    if (surrogate) continue;
    const char* p = text.data();
    ASSERT_EQ(DecodeUtf8(p), c);
    ASSERT_EQ(p, text.data() + text.size());
    for (size_t n = 1; n < text.size(); ++n) {
      const Utf8Step step = NextUtf8(text.substr(0, n));
      ASSERT_EQ(step.kind, Utf8Step::kIncomplete);
      ASSERT_EQ(step.n_bytes, n);
    }
  }
}

// The examples of the Unicode standard, section 3.9 (tables 3-8 to 3-11).
TEST(UnicodeTest, MaximalSubpartsAreReplaced) {
  const std::string r(kReplacement);
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
            r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("end\xE4\xB8"), "end" + r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xE4\xB8\xADok"), "\xE4\xB8\xADok");
}

TEST(UnicodeTest, CategoriesAreThoseOfUnicode16) {
  EXPECT_EQ(CategoryOf('A'), kLu);
  EXPECT_EQ(CategoryOf(' '), kZs);
  EXPECT_EQ(CategoryOf(0x4E2D), kLo);
  EXPECT_EQ(CategoryOf(0x0301), kMn);
  EXPECT_EQ(CategoryOf(0x1F600), kSo);
  EXPECT_EQ(CategoryOf(0x10FFFF), kCn);
  // Unicode 15: CJK extension H; Unicode 16: Garay, Latin additions.
  EXPECT_EQ(CategoryOf(0x31350), kLo);
  EXPECT_EQ(CategoryOf(0x10D50), kLu);
  EXPECT_EQ(CategoryOf(0xA7CB), kLu);
  // Unicode 17: not yet there.
  EXPECT_EQ(CategoryOf(0x323B0), kCn);
}

// Totals of Unicode 16.0.0 (DerivedGeneralCategory.txt).
TEST(UnicodeTest, CategoriesHaveTheirSizes) {
  const auto count = [](std::string_view name) {
    const uint32_t mask = CategoryMask(name);
    const auto runs = CategoryRuns();
    uint32_t n = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      const uint32_t last =
          i + 1 < runs.size() ? runs[i + 1].first : kNumCodePoints;
      if ((mask >> runs[i].category & 1) != 0) n += last - runs[i].first;
    }
    return n;
  };
  EXPECT_EQ(count("L"), 141028u);
  EXPECT_EQ(count("M"), 2501u);
  EXPECT_EQ(count("N"), 1911u);
  EXPECT_EQ(count("Nd"), 760u);
  EXPECT_EQ(count("P"), 855u);
  EXPECT_EQ(count("S"), 8514u);
  EXPECT_EQ(count("Lu"), 1858u);
  EXPECT_EQ(count("Z"), 19u);
  EXPECT_EQ(count("Cn"), 819533u);
  EXPECT_EQ(CategoryMask("Han"), 0u);
}

TEST(UnicodeTest, WhiteSpaceIsTheProperty) {
  int n = 0;
  for (char32_t c = 0; c < kNumCodePoints; ++c) n += IsWhiteSpace(c);
  EXPECT_EQ(n, 25);
  EXPECT_FALSE(IsWhiteSpace(0x180E));  // PCRE2's \s has it
  EXPECT_FALSE(IsWhiteSpace(0x200B));
  EXPECT_TRUE(IsWhiteSpace(0x85));
}

}  // namespace
}  // namespace belay::text
