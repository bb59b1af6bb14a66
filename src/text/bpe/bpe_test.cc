// SPDX-License-Identifier: Apache-2.0
#include "text/bpe/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/random.h"
#include "text/bpe/bpe_scratch.h"
#include "text/bpe/byte_level.h"

namespace belay::text {
namespace {

// A random tokenizer over the letters a-d. Merges are in random order, so that
// results of early merges can have lower ranks than merges that come to them.
class RandomBpe {
 public:
  explicit RandomBpe(uint64_t seed) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string bytes(1, static_cast<char>(byte));
      vocabulary.Add(PieceOfBytes(bytes), byte);
      tokens.push_back(bytes);
    }
    std::set<std::pair<int32_t, int32_t>> pairs;
    for (uint64_t i = 0; i < 60; ++i) {
      const int32_t left = Pick(RandomBits(seed, 3 * i));
      const int32_t right = Pick(RandomBits(seed, 3 * i + 1));
      const std::string joined = tokens[left] + tokens[right];
      if (joined.size() > 12 || !pairs.emplace(left, right).second) continue;
      if (vocabulary.IdOfBytes(joined) < 0) {
        vocabulary.Add(joined, static_cast<int32_t>(tokens.size()));
        tokens.push_back(joined);
      }
      const uint64_t at = RandomBits(seed, 3 * i + 2) % (merges.size() + 1);
      merges.insert(merges.begin() + at, {left, right});
    }
  }

  // The definition, as slow as it can be.
  std::vector<int32_t> Encode(std::string_view piece) const {
    std::vector<int32_t> ids;
    for (const char c : piece) ids.push_back(static_cast<uint8_t>(c));
    while (true) {
      size_t best_rank = merges.size();
      size_t best_at = 0;
      for (size_t at = 0; at + 1 < ids.size(); ++at) {
        for (size_t rank = 0; rank < best_rank; ++rank) {
          if (merges[rank].left == ids[at] &&
              merges[rank].right == ids[at + 1]) {
            best_rank = rank;
            best_at = at;
          }
        }
      }
      if (best_rank == merges.size()) return ids;
      ids[best_at] =
          vocabulary.IdOfBytes(tokens[ids[best_at]] + tokens[ids[best_at + 1]]);
      ids.erase(ids.begin() + best_at + 1);
    }
  }

  Vocabulary vocabulary;
  std::vector<std::string> tokens;
  std::vector<Bpe::Merge> merges;

 private:
  int32_t Pick(uint64_t bits) const {
    const uint64_t n_made = tokens.size() - 256;
    const uint64_t choice = bits % (4 + n_made);
    return static_cast<int32_t>(choice < 4 ? 'a' + choice : 252 + choice);
  }
};

TEST(BpeTest, EqualsTheDefinitionOnShortAndLongPieces) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const RandomBpe model(seed);
    const auto bpe = Bpe::Create(&model.vocabulary, model.merges, false, "t");
    ASSERT_TRUE(bpe.ok()) << bpe.status();
    Bpe::Scratch scratch;
    for (uint64_t length : {1, 2, 3, 5, 8, 12, 30, 95, 96, 97, 98, 200}) {
      std::string piece;
      for (uint64_t i = 0; i < length; ++i) {
        const uint64_t bits = RandomBits(seed * 1000 + length, i);
        piece += static_cast<char>('a' + bits % (2 + length % 3));
      }
      std::vector<int32_t> ids;
      bpe->Encode(piece, &scratch, &ids);
      ASSERT_EQ(ids, model.Encode(piece)) << "seed " << seed << " " << piece;
    }
  }
}

TEST(BpeTest, ATokenThatMergesDoNotReachIsNotUsed) {
  // "abc" is in the vocabulary, but "bc" is merged first and "a", "bc" never.
  RandomBpe model(0);
  model.vocabulary = Vocabulary();
  model.merges.clear();
  for (int byte = 0; byte < 256; ++byte) {
    model.vocabulary.Add(PieceOfBytes(std::string(1, static_cast<char>(byte))),
                         byte);
  }
  model.vocabulary.Add("ab", 256);
  model.vocabulary.Add("bc", 257);
  model.vocabulary.Add("abc", 258);
  model.merges = {{'b', 'c'}, {'a', 'b'}, {256, 'c'}};
  for (const bool ignore_merges : {false, true}) {
    const auto bpe =
        Bpe::Create(&model.vocabulary, model.merges, ignore_merges, "t");
    ASSERT_TRUE(bpe.ok()) << bpe.status();
    Bpe::Scratch scratch;
    std::vector<int32_t> ids;
    bpe->Encode("abc", &scratch, &ids);
    EXPECT_EQ(ids, ignore_merges ? std::vector<int32_t>{258}
                                 : (std::vector<int32_t>{'a', 257}));
  }
}

TEST(BpeTest, RefusesAByteWithoutToken) {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 255; ++byte) {
    vocabulary.Add(PieceOfBytes(std::string(1, static_cast<char>(byte))), byte);
  }
  const auto bpe = Bpe::Create(&vocabulary, {}, false, "t");
  EXPECT_EQ(ErrorIdOf(bpe.status()), "TOK-004");
}

TEST(ByteLevelTest, SpellsEveryByteOnce) {
  std::set<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    const std::string piece = PieceOfBytes(bytes);
    std::string back;
    EXPECT_TRUE(AppendBytesOfPiece(piece, &back));
    EXPECT_EQ(back, bytes);
    pieces.insert(piece);
  }
  EXPECT_EQ(pieces.size(), 256u);
  EXPECT_EQ(PieceOfBytes(" the\n"), "\u0120the\u010A");
  std::string none = "x";
  EXPECT_FALSE(AppendBytesOfPiece("a b", &none));
  EXPECT_FALSE(AppendBytesOfPiece("\uFF5C", &none));
  EXPECT_FALSE(AppendBytesOfPiece("\u00AD", &none));
  EXPECT_EQ(none, "x");
}

}  // namespace
}  // namespace belay::text
