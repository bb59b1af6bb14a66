// SPDX-License-Identifier: Apache-2.0
// A checkpoint folder as named views that have been checked: config.json, then
// model.safetensors or the shards of model.safetensors.index.json.
#ifndef BELAY_CHECKPOINT_CHECKPOINT_H_
#define BELAY_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "spec/config.h"
#include "spec/rank.h"
#include "spec/tensors.h"
#include "tensor/view.h"

namespace belay::checkpoint {

struct ShardSet;

struct CheckpointOptions {
  // A tensor that neither the model nor a known unused family has is an error
  // (CKPT-009), not a line of the report.
  bool strict = false;
  // Reads all scales and expert-id tables: about 6 % of an FP4 checkpoint.
  bool check_values = true;
  ThreadPool* pool = nullptr;  // for check_values; borrowed, may be null
};

// Tensors that are there and not used.
struct CheckpointReport {
  struct Unused {
    int64_t n_tensors = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string, Unused> unused;  // known families, by what they are
  std::vector<std::string> unknown;      // names, sorted
  std::vector<std::string> warnings;     // facts, in words
};

class Checkpoint {
 public:
  // Opens and checks. Errors: CKPT-014 (no checkpoint there), CONF-* (the
  // config), CKPT-001 .. CKPT-004, CKPT-010 .. CKPT-012 (the files), CKPT-007
  // (a tensor is missing), CKPT-005 and CKPT-006 (dtype, shape), CKPT-008 (a
  // scale is NaN, infinite or not positive), CKPT-013 (an expert id out of
  // range), CKPT-009 (strict), SYS-001.
  //
  // A checkpoint that leaves out its last MTP layers entirely, as some
  // conversions do, opens with as many fewer in config().
  static StatusOr<std::unique_ptr<Checkpoint>> Open(
      const std::string& folder, const CheckpointOptions& options = {});
  ~Checkpoint();

  const std::string& folder() const { return folder_; }
  const spec::ModelConfig& config() const { return config_; }
  const CheckpointReport& report() const { return report_; }

  // What the model uses, in the order of the forward pass; the dtypes are those
  // of the files.
  const std::vector<spec::ExpectedTensor>& tensors() const { return expected_; }
  int64_t n_files() const;

  // Takes the files' pages out of this process's memory, as often as wanted
  // while weights are bound: a back end that packs them needs no second copy.
  void ReleasePages() const;

  // The whole tensor; CKPT-007 when the model has none of this name.
  StatusOr<ConstTensorView> Get(std::string_view name) const;

  // The part of `rank`, in the mapped file: a range of rows, or of columns with
  // the whole row's stride. An empty view for an expert of another rank.
  // Errors: CKPT-007, CKPT-015.
  StatusOr<ConstTensorView> Slice(std::string_view name,
                                  const spec::Rank& rank) const;

 private:
  struct Entry {
    const spec::ExpectedTensor* expected = nullptr;
    ConstTensorView view;
  };

  Checkpoint();
  Status ReadConfig();
  void DropAbsentMtpLayers();
  Status Match();
  Status FindUnused(bool strict);
  Status CheckValues(ThreadPool* pool) const;

  std::string folder_;
  spec::ModelConfig config_;
  std::unique_ptr<ShardSet> shards_;
  std::vector<spec::ExpectedTensor> expected_;
  std::unordered_map<std::string_view, Entry> entries_;
  CheckpointReport report_;
};

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_CHECKPOINT_H_
