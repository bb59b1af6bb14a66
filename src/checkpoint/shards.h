// SPDX-License-Identifier: Apache-2.0
// The safetensors files of a checkpoint folder. Private to this room.
#ifndef BELAY_CHECKPOINT_SHARDS_H_
#define BELAY_CHECKPOINT_SHARDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace belay::checkpoint {

inline constexpr const char* kSingleFileName = "model.safetensors";
inline constexpr const char* kIndexFileName = "model.safetensors.index.json";

// model-00002-of-00046.safetensors; `number` counts from 1.
std::string ShardFileName(int number, int n_shards);

// The text of an index: {"metadata": {"total_size": ...}, "weight_map": {...}}.
std::string IndexJson(const std::map<std::string, std::string>& weight_map,
                      uint64_t total_size);

// All files of one checkpoint, open and consistent with their index.
struct ShardSet {
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  std::unordered_map<std::string_view, const StoredTensor*> tensors;
  std::vector<std::string> warnings;

  uint64_t data_bytes() const;
};

// Errors: CKPT-014 (no checkpoint in the folder), CKPT-010 (the index is
// malformed, or index and files disagree), CKPT-011 (a shard is missing),
// CKPT-012 (a tensor in two shards), and what SafetensorsFile::Open says. A
// total_size that does not fit is a warning: releases have had wrong ones.
StatusOr<ShardSet> OpenShards(const std::string& folder);

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_SHARDS_H_
