// SPDX-License-Identifier: Apache-2.0
// Byte pair encoding of one piece of text: the pair of neighbours with the
// lowest rank is merged first, the leftmost of equals first, until none is
// left.
#ifndef BELAY_TEXT_BPE_BPE_H_
#define BELAY_TEXT_BPE_BPE_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/bpe/vocabulary.h"

namespace belay::text {

class Bpe {
 public:
  // Working memory of one call; keep it over many pieces, one a thread.
  struct Scratch;

  // One merge: the tokens `left` and `right` become the token of their joined
  // bytes. The position in the list is the rank.
  struct Merge {
    int32_t left;
    int32_t right;
  };

  // `vocabulary` must stay where it is while this lives. TOK-004 when a byte
  // has no token (its text would be lost) or a merge gives no token.
  // `ignore_merges`: a piece that is a token is that token, merges or not.
  static StatusOr<Bpe> Create(const Vocabulary* vocabulary,
                              const std::vector<Merge>& merges,
                              bool ignore_merges, std::string_view where);

  // Appends the ids of `piece` (fewer than 2^31 bytes). n log n in its length.
  void Encode(std::string_view piece, Scratch* scratch,
              std::vector<int32_t>* ids) const;

 private:
  struct Merged {
    uint32_t rank = kNoRank;
    int32_t id = -1;
  };
  struct PairSlot {
    uint64_t pair = kNoPair;  // left << 32 | right
    Merged merged;
  };
  static constexpr uint32_t kNoRank = UINT32_MAX;
  static constexpr uint64_t kNoPair = UINT64_MAX;

  Bpe() = default;
  Status AddMerges(const std::vector<Merge>& merges, std::string_view where);
  void Insert(uint64_t pair, Merged merged);
  Merged Find(int32_t left, int32_t right) const;
  void FindWholes(bool ignore_merges);
  void MergeShort(std::string_view piece, std::vector<int32_t>* ids) const;
  void MergeLong(std::string_view piece, Scratch* scratch,
                 std::vector<int32_t>* ids) const;
  void UpdatePair(int32_t at, Scratch* scratch) const;
  void MergeAt(int32_t at, Scratch* scratch) const;
  void MergeBucket(uint32_t rank, Scratch* scratch) const;

  const Vocabulary* vocabulary_ = nullptr;
  std::array<int32_t, 256> byte_ids_{};
  size_t n_ranks_ = 0;
  std::vector<PairSlot> pairs_;     // open addressing, a power of two
  std::vector<Merged> byte_pairs_;  // [256 * 256], the same by two bytes
  std::vector<bool> whole_;         // by id: its bytes encode to it alone
};

}  // namespace belay::text

#endif  // BELAY_TEXT_BPE_BPE_H_
