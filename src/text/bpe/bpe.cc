// SPDX-License-Identifier: Apache-2.0
#include "text/bpe/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/error_ids.h"
#include "text/bpe/bpe_scratch.h"
#include "text/bpe/byte_level.h"

namespace belay::text {
namespace {

// Up to here, scanning all ranks for the lowest is faster than any queue.
constexpr size_t kMaxShort = 96;

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
         static_cast<uint32_t>(right);
}

uint64_t HashPair(uint64_t pair) {
  const uint64_t hash = pair * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

uint8_t ByteAt(std::string_view bytes, size_t i) {
  return static_cast<uint8_t>(bytes[i]);
}

}  // namespace

StatusOr<Bpe> Bpe::Create(const Vocabulary* vocabulary,
                          const std::vector<Merge>& merges, bool ignore_merges,
                          std::string_view where) {
  Bpe bpe;
  bpe.vocabulary_ = vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    bpe.byte_ids_[byte] = vocabulary->IdOfBytes({&c, 1});
    if (bpe.byte_ids_[byte] < 0) {
      return MakeError(kTokInconsistent,
                       {.where = std::string(where) + ": model.vocab",
                        .what = "a byte has no token",
                        .expected = PieceOfBytes({&c, 1}),
                        .got = "no such entry"});
    }
  }
  BELAY_RETURN_IF_ERROR(bpe.AddMerges(merges, where));
  bpe.FindWholes(ignore_merges);
  return bpe;
}

Status Bpe::AddMerges(const std::vector<Merge>& merges,
                      std::string_view where) {
  n_ranks_ = merges.size();
  pairs_.assign(std::bit_ceil(merges.size() * 2 + 16), PairSlot{});
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    joined.assign(vocabulary_->BytesOf(merge.left));
    joined.append(vocabulary_->BytesOf(merge.right));
    const int32_t id = vocabulary_->IdOfBytes(joined);
    if (id < 0) {
      return MakeError(
          kTokInconsistent,
          {.where = std::string(where) + ": model.merges[" +
                    std::to_string(rank) + "]",
           .what = "the result of a merge is not in the vocabulary",
           .expected = PieceOfBytes(joined),
           .got = "no such entry"});
    }
    Insert(PairKey(merge.left, merge.right), {static_cast<uint32_t>(rank), id});
  }
  // Every piece starts with pairs of bytes: a table of them saves the hashing.
  byte_pairs_.resize(size_t{256} * 256);
  for (int left = 0; left < 256; ++left) {
    for (int right = 0; right < 256; ++right) {
      byte_pairs_[left << 8 | right] = Find(byte_ids_[left], byte_ids_[right]);
    }
  }
  return absl::OkStatus();
}

// A pair given twice keeps its last rank, as in the Rust tokenizer.
void Bpe::Insert(uint64_t pair, Merged merged) {
  const size_t mask = pairs_.size() - 1;
  size_t at = HashPair(pair) & mask;
  while (pairs_[at].pair != kNoPair && pairs_[at].pair != pair) {
    at = (at + 1) & mask;
  }
  pairs_[at] = {pair, merged};
}

Bpe::Merged Bpe::Find(int32_t left, int32_t right) const {
  const uint64_t pair = PairKey(left, right);
  const size_t mask = pairs_.size() - 1;
  size_t at = HashPair(pair) & mask;
  while (true) {
    const PairSlot& slot = pairs_[at];
    if (slot.pair == pair) return slot.merged;
    if (slot.pair == kNoPair) return {};
    at = (at + 1) & mask;
  }
}

// Most pieces of ordinary text are tokens. Whether merging really ends in that
// token is asked once here; then one lookup replaces the merging.
void Bpe::FindWholes(bool ignore_merges) {
  whole_.assign(vocabulary_->size(), false);
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocabulary_->size(); ++id) {
    if (vocabulary_->KindOf(id) != Vocabulary::kByteLevel) continue;
    const std::string_view bytes = vocabulary_->BytesOf(id);
    if (ignore_merges) {
      whole_[id] = true;
    } else if (!bytes.empty() && bytes.size() <= kMaxShort) {
      ids.clear();
      MergeShort(bytes, &ids);
      whole_[id] = ids.size() == 1 && ids[0] == id;
    }
  }
}

void Bpe::Encode(std::string_view piece, Scratch* scratch,
                 std::vector<int32_t>* ids) const {
  if (piece.empty()) return;
  if (piece.size() == 1) {
    ids->push_back(byte_ids_[ByteAt(piece, 0)]);
    return;
  }
  if (piece.size() <= vocabulary_->max_token_bytes()) {
    const int32_t id = vocabulary_->IdOfBytes(piece);
    if (id >= 0 && whole_[id]) {
      ids->push_back(id);
      return;
    }
  }
  if (piece.size() <= kMaxShort) {
    MergeShort(piece, ids);
  } else {
    MergeLong(piece, scratch, ids);
  }
}

void Bpe::MergeShort(std::string_view piece, std::vector<int32_t>* ids) const {
  int32_t id[kMaxShort];
  uint32_t rank[kMaxShort];   // of the pair (i, i + 1)
  int32_t merged[kMaxShort];  // and what it becomes
  size_t n = piece.size();
  for (size_t i = 0; i < n; ++i) id[i] = byte_ids_[ByteAt(piece, i)];
  for (size_t i = 0; i + 1 < n; ++i) {
    const Merged& pair =
        byte_pairs_[ByteAt(piece, i) << 8 | ByteAt(piece, i + 1)];
    rank[i] = pair.rank;
    merged[i] = pair.id;
  }
  const auto update = [&](size_t i) {
    const Merged pair = Find(id[i], id[i + 1]);
    rank[i] = pair.rank;
    merged[i] = pair.id;
  };
  while (n > 1) {
    uint32_t lowest = kNoRank;
    for (size_t i = 0; i + 1 < n; ++i) lowest = std::min(lowest, rank[i]);
    if (lowest == kNoRank) break;
    const size_t at = std::find(rank, rank + n - 1, lowest) - rank;
    id[at] = merged[at];
    const size_t n_behind = n - at - 2;
    std::memmove(id + at + 1, id + at + 2, n_behind * sizeof(id[0]));
    if (n_behind > 0) {
      std::memmove(rank + at + 1, rank + at + 2,
                   (n_behind - 1) * sizeof(rank[0]));
      std::memmove(merged + at + 1, merged + at + 2,
                   (n_behind - 1) * sizeof(merged[0]));
    }
    --n;
    if (at > 0) update(at - 1);
    if (at + 1 < n) update(at);
  }
  ids->insert(ids->end(), id, id + n);
}

void Bpe::MergeLong(std::string_view piece, Scratch* scratch,
                    std::vector<int32_t>* ids) const {
  const int32_t n = static_cast<int32_t>(piece.size());
  scratch->nodes.resize(n);
  scratch->bucket_of.resize(n_ranks_);
  for (int32_t i = 0; i < n; ++i) {
    scratch->nodes[i] = {.id = byte_ids_[ByteAt(piece, i)],
                         .prev = i - 1,
                         .next = i + 1 < n ? i + 1 : -1,
                         .pair = {}};
  }
  for (int32_t i = 0; i < n; ++i) UpdatePair(i, scratch);
  while (!scratch->ranks.empty()) MergeBucket(scratch->ranks.top(), scratch);
  for (size_t i = 0; i < scratch->n_buckets; ++i) {
    scratch->bucket_of[scratch->buckets[i].rank] = 0;
  }
  scratch->n_buckets = 0;
  for (int32_t i = 0; i >= 0; i = scratch->nodes[i].next) {
    ids->push_back(scratch->nodes[i].id);
  }
}

// Looks up the pair that starts at node `at` and queues it.
void Bpe::UpdatePair(int32_t at, Scratch* scratch) const {
  Scratch::Node& node = scratch->nodes[at];
  node.pair =
      node.next < 0 ? Merged{} : Find(node.id, scratch->nodes[node.next].id);
  const uint32_t rank = node.pair.rank;
  if (rank == kNoRank) return;
  uint32_t& place = scratch->bucket_of[rank];
  if (place == 0) {
    if (scratch->n_buckets == scratch->buckets.size()) {
      scratch->buckets.emplace_back();
    }
    place = static_cast<uint32_t>(++scratch->n_buckets);
    scratch->buckets[place - 1].rank = rank;
  }
  Scratch::Bucket& bucket = scratch->buckets[place - 1];
  if (bucket.at.empty()) {
    scratch->ranks.push(rank);
  } else if (at < bucket.at.back()) {
    bucket.sorted = false;
  }
  bucket.at.push_back(at);
}

// Merges the pairs of one rank from left to right, until they are done or a
// merge has made a pair of a lower rank, which then comes first. A merge never
// makes a pair of its own rank: its result is longer than both its parts.
void Bpe::MergeBucket(uint32_t rank, Scratch* scratch) const {
  const uint32_t index = scratch->bucket_of[rank] - 1;
  // By index: a merge may add buckets.
  const auto bucket = [&]() -> Scratch::Bucket& {
    return scratch->buckets[index];
  };
  if (!bucket().sorted) {
    std::sort(bucket().at.begin() + bucket().n_done, bucket().at.end());
    bucket().sorted = true;
  }
  while (scratch->ranks.top() == rank) {
    if (bucket().n_done == bucket().at.size()) {
      bucket().Clear();
      scratch->ranks.pop();
      return;
    }
    const int32_t at = bucket().at[bucket().n_done++];
    // Otherwise one of the two has been merged with another since.
    if (scratch->nodes[at].pair.rank == rank) MergeAt(at, scratch);
  }
}

void Bpe::MergeAt(int32_t at, Scratch* scratch) const {
  std::vector<Scratch::Node>& nodes = scratch->nodes;
  const int32_t right = nodes[at].next;
  nodes[at].id = nodes[at].pair.id;
  nodes[at].next = nodes[right].next;
  nodes[right].pair = {};
  if (nodes[at].next >= 0) nodes[nodes[at].next].prev = at;
  if (nodes[at].prev >= 0) UpdatePair(nodes[at].prev, scratch);
  UpdatePair(at, scratch);
}

}  // namespace belay::text
