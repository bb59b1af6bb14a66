// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix/tree.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace belay::engine {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace

PrefixTree::PrefixTree(int64_t n_nodes, uint64_t hash_bits)
    : nodes_(static_cast<size_t>(n_nodes)),
      links_(static_cast<size_t>(n_nodes)),
      ids_(static_cast<size_t>(n_nodes * kPageTokens)),
      buckets_(std::bit_ceil(static_cast<size_t>(n_nodes) + 1), -1),
      mask_(buckets_.size() - 1),
      hash_bits_(hash_bits) {
  free_.reserve(nodes_.size());
  for (auto i = static_cast<int32_t>(n_nodes); i > 0; --i) {
    free_.push_back(i - 1);
  }
}

uint64_t PrefixTree::Hash(int32_t parent, const PrefixKey& key,
                          std::span<const int32_t> ids) const {
  uint64_t hash = Mix(key.salt, static_cast<uint32_t>(key.adapter));
  hash = Mix(hash, static_cast<uint32_t>(parent));
  for (const int32_t id : ids) hash = Mix(hash, static_cast<uint32_t>(id));
  return hash & hash_bits_;
}

std::span<const int32_t> PrefixTree::ids(int32_t i) const {
  return std::span(ids_).subspan(static_cast<size_t>(i) * kPageTokens,
                                 kPageTokens);
}

int32_t PrefixTree::Find(int32_t parent, const PrefixKey& key,
                         std::span<const int32_t> ids) const {
  BELAY_CHECK(ids.size() == kPageTokens);
  const uint64_t hash = Hash(parent, key, ids);
  for (int32_t i = buckets_[hash & mask_]; i >= 0;
       i = links_[static_cast<size_t>(i)].next_in_bucket) {
    if (links_[static_cast<size_t>(i)].hash != hash) continue;
    const PrefixNode& candidate = node(i);
    if (candidate.parent == parent && candidate.key == key &&
        std::ranges::equal(this->ids(i), ids)) {
      return i;
    }
  }
  return -1;
}

int32_t PrefixTree::Insert(int32_t parent, const PrefixKey& key,
                           std::span<const int32_t> ids, int32_t page) {
  BELAY_CHECK(ids.size() == kPageTokens && !free_.empty());
  const int32_t i = free_.back();
  free_.pop_back();
  PrefixNode& added = node(i);
  added = {};
  added.exists = true;
  added.parent = parent;
  added.page = page;
  added.depth = parent < 0 ? 1 : node(parent).depth + 1;
  added.key = key;
  added.used = ++time_;
  if (parent >= 0) {
    if (is_unused_leaf(parent)) UnlinkLeaf(parent);
    ++node(parent).n_children;
  }
  std::ranges::copy(ids, ids_.begin() + int64_t{i} * kPageTokens);
  const uint64_t hash = Hash(parent, key, ids);
  links(i) = {.next_in_bucket = Bucket(hash), .hash = hash};
  Bucket(hash) = i;
  ++n_nodes_;
  ++n_unused_;
  LinkLeaf(i);
  return i;
}

void PrefixTree::Hold(int32_t node) {
  for (int32_t i = node; i >= 0; i = this->node(i).parent) {
    if (is_unused_leaf(i)) UnlinkLeaf(i);
    if (this->node(i).n_users++ == 0) --n_unused_;
  }
}

void PrefixTree::HoldChild(int32_t child) {
  // Above the child nothing changes: the hold stays below the same nodes.
  if (is_unused_leaf(child)) UnlinkLeaf(child);
  if (node(child).n_users++ == 0) --n_unused_;
}

void PrefixTree::Release(int32_t node) {
  ++time_;
  for (int32_t i = node; i >= 0; i = this->node(i).parent) {
    PrefixNode& released = this->node(i);
    released.used = time_;
    BELAY_CHECK(released.n_users > 0);
    if (--released.n_users > 0) continue;
    ++n_unused_;
    if (released.n_children == 0) LinkLeaf(i);
  }
}

void PrefixTree::Remove(int32_t node) {
  BELAY_CHECK(is_unused_leaf(node));
  UnlinkLeaf(node);
  int32_t* at = &Bucket(links(node).hash);
  while (*at != node) at = &links(*at).next_in_bucket;
  *at = links(node).next_in_bucket;
  --n_nodes_;
  --n_unused_;
  free_.push_back(node);
  this->node(node).exists = false;
  this->node(node).unsaved = false;
  const int32_t parent = this->node(node).parent;
  if (parent < 0) return;
  --this->node(parent).n_children;
  if (is_unused_leaf(parent)) LinkLeaf(parent);
}

// Keeps the list in order of use. What was used just now is the newest, and a
// parent that lost its last child is about as old as that: either end is near.
void PrefixTree::LinkLeaf(int32_t node) {
  const uint64_t used = this->node(node).used;
  int32_t older = newest_;
  int32_t newer = -1;
  const bool from_old_end = oldest_ >= 0 && used <= this->node(oldest_).used;
  if (from_old_end) {
    older = -1;
    newer = oldest_;
  }
  while (older >= 0 && this->node(older).used > used) {
    newer = older;
    older = links(older).older;
  }
  links(node).older = older;
  links(node).newer = newer;
  (older >= 0 ? links(older).newer : oldest_) = node;
  (newer >= 0 ? links(newer).older : newest_) = node;
}

void PrefixTree::UnlinkLeaf(int32_t node) {
  const Links& l = links(node);
  (l.older >= 0 ? links(l.older).newer : oldest_) = l.newer;
  (l.newer >= 0 ? links(l.newer).older : newest_) = l.older;
}

}  // namespace belay::engine
