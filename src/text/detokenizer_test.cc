// SPDX-License-Identifier: Apache-2.0
#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "text/split/unicode.h"

namespace belay::text {
namespace {

// Bytes that make characters, parts of characters and nonsense likely.
std::string RandomBytes(uint64_t seed) {
  static constexpr std::string_view kBytes =
      "aZ \n\x80\x90\x9F\xA0\xBF\xC0\xC2\xDF\xE0\xE4\xED\xEF\xF0\xF1\xF4\xF5"
      "\xFF";
  std::string bytes;
  const uint64_t n = RandomBits(seed, 0) % 20;
  for (uint64_t i = 1; i <= n; ++i) {
    bytes += kBytes[RandomBits(seed, i) % kBytes.size()];
  }
  return bytes;
}

TEST(Utf8StreamTest, EveryCutGivesTheSame) {
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    const std::string bytes = RandomBytes(seed);
    Utf8Stream stream;
    std::string text;
    for (size_t at = 0, i = 100; at < bytes.size(); ++i) {
      const size_t n = RandomBits(seed, i) % 4;
      const std::string part =
          stream.Append(std::string_view(bytes).substr(at, n));
      ASSERT_TRUE(IsValidUtf8(part));
      text += part;
      at += n;
    }
    text += stream.Finish();
    ASSERT_EQ(text, ReplaceInvalidUtf8(bytes)) << "seed " << seed;
    ASSERT_FALSE(stream.pending());
  }
}

TEST(Utf8StreamTest, HoldsBackOnlyWhatMayBecomeACharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Append("a\xF0\x9F"), "a");
  EXPECT_TRUE(stream.pending());
  EXPECT_EQ(stream.Append("\x98"), "");
  EXPECT_EQ(stream.Append("\x80!"), "\U0001F600!");
  EXPECT_FALSE(stream.pending());
  EXPECT_EQ(stream.Append("\xE0\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(stream.Append("\xE4\xB8"), "");
  EXPECT_EQ(stream.Append("x"), "\uFFFDx");
}

TEST(StreamDecoderTest, EqualsDecodeOfAllIds) {
  const auto tokenizer = Tokenizer::Open("tests/data/tokenizer/demo.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const Tokenizer& t = **tokenizer;
  for (const bool skip_special : {false, true}) {
    const DecodeOptions options{.skip_special = skip_special};
    StreamDecoder decoder(*tokenizer, options);
    for (uint64_t seed = 0; seed < 500; ++seed) {
      std::vector<int32_t> ids;
      std::string streamed;
      for (uint64_t i = 0; i < 40; ++i) {
        const uint64_t bits = RandomBits(seed, i);
        // Often single bytes (3 to 258), at times ids beyond the vocabulary.
        ids.push_back(static_cast<int32_t>(
            bits % 2 == 0 ? 3 + (bits >> 8) % 256
                          : (bits >> 8) % (t.vocab_size() + 20)));
        const std::string part = decoder.Append(ids.back());
        ASSERT_TRUE(IsValidUtf8(part));
        streamed += part;
      }
      streamed += decoder.Finish();
      ASSERT_EQ(streamed, t.Decode(ids, options)) << "seed " << seed;
    }
  }
}

TEST(StreamDecoderTest, EmojiComesWholeAndTheEndIsNotLost) {
  const auto tokenizer = Tokenizer::Open("tests/data/tokenizer/demo.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ids = (*tokenizer)->Encode("\U0001F9D7");
  ASSERT_TRUE(ids.ok());
  ASSERT_GT(ids->size(), 1u);
  StreamDecoder decoder(*tokenizer);
  for (size_t i = 0; i + 1 < ids->size(); ++i) {
    EXPECT_EQ(decoder.Append((*ids)[i]), "");
  }
  EXPECT_EQ(decoder.Append(ids->back()), "\U0001F9D7");
  EXPECT_EQ(decoder.Append(ids->front()), "");
  EXPECT_EQ(decoder.Finish(), "\uFFFD");
  EXPECT_EQ(decoder.Finish(), "");
}

}  // namespace
}  // namespace belay::text
