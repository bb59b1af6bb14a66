// SPDX-License-Identifier: Apache-2.0
// Ids <-> the bytes that they stand for.
#ifndef BELAY_TEXT_BPE_VOCABULARY_H_
#define BELAY_TEXT_BPE_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace belay::text {

// A fast hash of short byte strings; not for keys of an attacker.
uint32_t HashBytes(std::string_view bytes);

class Vocabulary {
 public:
  enum Kind : uint8_t {
    kUnused,     // no token has this id
    kByteLevel,  // spelled in the byte alphabet: BPE can make it
    kLiteral,  // spelled as it is: an added token, or one that BPE never makes
  };

  // Room for the tokens to come.
  void Reserve(size_t n_tokens, size_t n_bytes);

  // Adds one entry of the model's vocabulary as tokenizer.json spells it.
  // False when the id or the piece is there already. id in [0, kMaxId].
  bool Add(std::string_view piece, int32_t id);

  // Adds an added token; true too if the model's vocabulary has exactly it.
  bool AddContent(std::string_view content, int32_t id);

  // The id of a byte-level token that stands for exactly `bytes`, or -1.
  int32_t IdOfBytes(std::string_view bytes) const;

  // The id of a piece as tokenizer.json spells it, or -1.
  int32_t IdOfPiece(std::string_view piece) const;

  Kind KindOf(int32_t id) const {
    return id >= 0 && id < size() ? entries_[id].kind : kUnused;
  }

  // "" for an unused id.
  std::string_view BytesOf(int32_t id) const {
    if (id < 0 || id >= size()) return {};
    const Entry& entry = entries_[id];
    return {arena_.data() + entry.offset, entry.n_bytes};
  }

  // The spelling of a used id.
  std::string PieceOf(int32_t id) const;

  // The highest id + 1.
  int32_t size() const { return static_cast<int32_t>(entries_.size()); }
  size_t n_used() const { return n_used_; }
  // Of the longest byte-level token.
  uint32_t max_token_bytes() const { return max_token_bytes_; }

  static constexpr int32_t kMaxId = (1 << 22) - 1;  // far above any model

 private:
  struct Entry {
    size_t offset = 0;
    uint32_t n_bytes = 0;
    Kind kind = kUnused;
  };
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };

  bool Claim(int32_t id, size_t offset, Kind kind);
  void Insert(int32_t id);
  void Grow(size_t n_slots);

  std::string arena_;           // the bytes of all tokens
  std::vector<Entry> entries_;  // by id
  std::vector<Slot> slots_;     // byte-level tokens by bytes; a power of two
  size_t n_in_slots_ = 0;
  size_t n_used_ = 0;
  uint32_t max_token_bytes_ = 0;
  // Few: the spellings of literal tokens.
  std::unordered_map<std::string, int32_t> literals_;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_BPE_VOCABULARY_H_
