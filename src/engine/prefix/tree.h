// SPDX-License-Identifier: Apache-2.0
// Which cache pages hold which tokens: a tree whose nodes are full pages of
// kPageTokens tokens, each found below its parent by the token ids themselves.
#ifndef BELAY_ENGINE_PREFIX_TREE_H_
#define BELAY_ENGINE_PREFIX_TREE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/row_format.h"

namespace belay::engine {

// Tokens are shared below one key only: what differs here never meets.
struct PrefixKey {
  uint64_t salt = 0;
  int32_t adapter = -1;
  bool operator==(const PrefixKey&) const = default;
};

struct PrefixNode {
  int32_t parent = -1;  // -1: the first page of its key
  int32_t page = -1;
  int32_t resume = -1;  // resume point at the page's end, -1 = none
  int32_t depth = 0;    // pages from the start, the own one included
  PrefixKey key;
  int32_t n_children = 0;
  int32_t n_users = 0;  // holds on the node and below it
  uint64_t used = 0;    // when it was used last, in the tree's own time
  bool exists = false;
  bool unsaved = false;  // not on disk as it is now
};

// Everything has its place from the start; nothing is allocated later. Nodes
// are named by index. A node that nobody holds and that has no child may be
// removed; the one that was used longest ago comes first.
class PrefixTree {
 public:
  // `hash_bits`: those of a hash that are used; a test lets hashes collide.
  explicit PrefixTree(int64_t n_nodes, uint64_t hash_bits = ~uint64_t{0});

  // The child of `parent` (-1: of the root) for `ids` [kPageTokens] under
  // `key`; -1 when there is none. Hashes only say where to look: ids and key
  // are compared.
  int32_t Find(int32_t parent, const PrefixKey& key,
               std::span<const int32_t> ids) const;
  // A child that Find does not know yet; not held. Needs size() < n_nodes.
  int32_t Insert(int32_t parent, const PrefixKey& key,
                 std::span<const int32_t> ids, int32_t page);

  // A hold keeps a node and all above it. HoldChild moves a hold from a node
  // (-1: from nothing) to its child. -1 is allowed in all three.
  void Hold(int32_t node);
  void HoldChild(int32_t child);
  void Release(int32_t node);

  // The unused leaf that was used longest ago; -1 = all are in use.
  int32_t Oldest() const { return oldest_; }
  // Forgets an unused leaf.
  void Remove(int32_t node);

  PrefixNode& node(int32_t i) { return nodes_[static_cast<size_t>(i)]; }
  const PrefixNode& node(int32_t i) const {
    return nodes_[static_cast<size_t>(i)];
  }
  std::span<const int32_t> ids(int32_t i) const;
  int64_t size() const { return n_nodes_; }
  int64_t capacity() const { return static_cast<int64_t>(nodes_.size()); }
  // Nodes that Remove could take away one after another.
  int64_t n_unused() const { return n_unused_; }

 private:
  struct Links {
    int32_t next_in_bucket = -1;
    int32_t older = -1;  // in the list of unused leaves
    int32_t newer = -1;
    uint64_t hash = 0;
  };

  uint64_t Hash(int32_t parent, const PrefixKey& key,
                std::span<const int32_t> ids) const;
  int32_t& Bucket(uint64_t hash) { return buckets_[hash & mask_]; }
  bool is_unused_leaf(int32_t i) const {
    return node(i).n_users == 0 && node(i).n_children == 0;
  }
  Links& links(int32_t i) { return links_[static_cast<size_t>(i)]; }
  void LinkLeaf(int32_t node);
  void UnlinkLeaf(int32_t node);

  std::vector<PrefixNode> nodes_;
  std::vector<Links> links_;
  std::vector<int32_t> ids_;  // [n_nodes, kPageTokens]
  std::vector<int32_t> buckets_;
  uint64_t mask_ = 0;  // of the buckets
  uint64_t hash_bits_;
  std::vector<int32_t> free_;
  int64_t n_nodes_ = 0;
  int64_t n_unused_ = 0;
  int32_t oldest_ = -1;  // the ends of the list of unused leaves
  int32_t newest_ = -1;
  uint64_t time_ = 0;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_PREFIX_TREE_H_
