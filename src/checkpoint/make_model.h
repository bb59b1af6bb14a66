// SPDX-License-Identifier: Apache-2.0
// Random checkpoints in the official format: for tests, demos and measurements
// of speed and memory. What they write is noise.
#ifndef BELAY_CHECKPOINT_MAKE_MODEL_H_
#define BELAY_CHECKPOINT_MAKE_MODEL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "spec/config.h"

namespace belay::checkpoint {

struct MakeModelOptions {
  spec::ModelConfig config;
  uint64_t seed = 0;
  std::string folder;
  // A larger model is split into shards of at most this many bytes of tensors,
  // with an index.
  uint64_t max_shard_bytes = uint64_t{4} << 30;
  ThreadPool* pool = nullptr;  // borrowed, may be null
  // Called with bytes of tensors from the calling thread; an error ends the
  // work (and leaves no unfinished file).
  std::function<Status(uint64_t done, uint64_t total)> progress;
};

struct MadeModel {
  int64_t n_tensors = 0;
  int64_t n_files = 0;  // safetensors files
  uint64_t bytes = 0;   // of tensors
};

// Creates the folder and writes config.json last, after model.safetensors or
// the shards and their index. The same config and seed give the same bytes on
// every machine, with any number of threads. Errors: CONF-* (a config that
// CheckConfig refuses), ARG-001 (the folder has a checkpoint already), SYS-002,
// what `progress` returns.
StatusOr<MadeModel> MakeModel(const MakeModelOptions& options);

// Opens options.folder as a checkpoint and compares every byte with what
// MakeModel writes. Errors: what Checkpoint::Open says, CONF-005 (another
// config), CKPT-013 (a tensor that differs).
Status VerifyModel(const MakeModelOptions& options);

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_MAKE_MODEL_H_
