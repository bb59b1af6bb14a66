// SPDX-License-Identifier: Apache-2.0
#include "text/bpe/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "text/bpe/byte_level.h"

namespace belay::text {

uint32_t HashBytes(std::string_view bytes) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
  uint64_t hash = bytes.size() * kOdd;
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t n = std::min<size_t>(bytes.size(), 8);
    std::memcpy(&word, bytes.data(), n);
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
    bytes.remove_prefix(n);
  }
  return static_cast<uint32_t>(hash ^ hash >> 29);
}

void Vocabulary::Reserve(size_t n_tokens, size_t n_bytes) {
  entries_.reserve(n_tokens);
  arena_.reserve(n_bytes);
  Grow(std::bit_ceil(n_tokens * 2 + 16));
}

bool Vocabulary::Claim(int32_t id, size_t offset, Kind kind) {
  if (id >= size()) entries_.resize(id + 1);
  Entry& entry = entries_[id];
  if (entry.kind != kUnused) return false;
  entry.offset = offset;
  entry.n_bytes = static_cast<uint32_t>(arena_.size() - offset);
  entry.kind = kind;
  ++n_used_;
  return true;
}

bool Vocabulary::Add(std::string_view piece, int32_t id) {
  const size_t offset = arena_.size();
  if (!AppendBytesOfPiece(piece, &arena_)) return AddContent(piece, id);
  const std::string_view bytes = std::string_view(arena_).substr(offset);
  if (IdOfBytes(bytes) >= 0 || !Claim(id, offset, kByteLevel)) {
    arena_.resize(offset);
    return false;
  }
  max_token_bytes_ = std::max(max_token_bytes_, entries_[id].n_bytes);
  Insert(id);
  return true;
}

bool Vocabulary::AddContent(std::string_view content, int32_t id) {
  const int32_t known = IdOfPiece(content);
  if (known >= 0) return known == id;
  const size_t offset = arena_.size();
  // The ByteLevel decoder reads added tokens in the byte alphabet too, and
  // takes them as they are only where that fails.
  if (!AppendBytesOfPiece(content, &arena_)) arena_.append(content);
  if (!Claim(id, offset, kLiteral)) {
    arena_.resize(offset);
    return false;
  }
  literals_.emplace(content, id);
  return true;
}

void Vocabulary::Insert(int32_t id) {
  if ((n_in_slots_ + 1) * 2 > slots_.size()) {
    Grow(std::max<size_t>(slots_.size() * 2, 16));
  }
  const uint32_t hash = HashBytes(BytesOf(id));
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].id >= 0) at = (at + 1) & mask;
  slots_[at] = {hash, id};
  ++n_in_slots_;
}

void Vocabulary::Grow(size_t n_slots) {
  if (n_slots <= slots_.size()) return;
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(n_slots, Slot{});
  const size_t mask = n_slots - 1;
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].id >= 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

int32_t Vocabulary::IdOfBytes(std::string_view bytes) const {
  if (slots_.empty()) return -1;
  const uint32_t hash = HashBytes(bytes);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && BytesOf(slots_[at].id) == bytes) {
      return slots_[at].id;
    }
  }
  return -1;
}

int32_t Vocabulary::IdOfPiece(std::string_view piece) const {
  const auto literal = literals_.find(std::string(piece));
  if (literal != literals_.end()) return literal->second;
  std::string bytes;
  return AppendBytesOfPiece(piece, &bytes) ? IdOfBytes(bytes) : -1;
}

std::string Vocabulary::PieceOf(int32_t id) const {
  if (KindOf(id) == kByteLevel) return PieceOfBytes(BytesOf(id));
  for (const auto& [content, literal_id] : literals_) {
    if (literal_id == id) return content;
  }
  return {};
}

}  // namespace belay::text
