// SPDX-License-Identifier: Apache-2.0
// A GGUF model of architecture "deepseek4" as named views that have been
// checked, under the official names of the tensors.
#ifndef BELAY_CHECKPOINT_GGUF_MODEL_H_
#define BELAY_CHECKPOINT_GGUF_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/file.h"
#include "spec/config.h"
#include "tensor/block_format.h"
#include "tensor/buffer.h"

namespace belay::checkpoint::gguf {

class GgufModel {
 public:
  // Opens `path` (any part of a split model) and checks every tensor that the
  // model needs. Errors: what OpenSet and ConfigFromMetadata say, CKPT-007 (a
  // tensor is missing), CKPT-006 (shape), GGUF-004 (a type that Belay does not
  // read, codebook types among them), CKPT-013 (an expert id out of range),
  // CKPT-009 (strict: a tensor that no part of the model is), SYS-003.
  static StatusOr<std::unique_ptr<GgufModel>> Open(const std::string& path,
                                                   bool strict = false);

  const std::string& path() const { return path_; }
  const spec::ModelConfig& config() const { return config_; }
  const Metadata& metadata() const { return set_.metadata(); }
  const CheckpointReport& report() const { return report_; }
  const GgufSet& files() const { return set_; }

  // The tensor that the official checkpoint calls `name`, empty when there is
  // none. Matrices of linears and the embedding table as the file holds them,
  // borrowed: an expert is a range of rows of its stack, e_proj and h_proj are
  // halves of the rows of eh_proj. Everything smaller (norms,
  // hyper-connections, ape, biases) is F32, expert tables are I64, converted
  // once at Open.
  StoredView Find(std::string_view name) const;

  // As Checkpoint::ReleasePages.
  void ReleasePages() const {
    for (const auto& file : set_.files) file->ReleasePages();
  }

  // Of the tensors that the model uses.
  struct Sum {
    int64_t n_tensors = 0;
    uint64_t bytes = 0;
  };
  const std::map<std::string, Sum>& by_type() const { return by_type_; }
  uint64_t weight_bytes() const;

 private:
  GgufModel() = default;
  Status Match();
  Status Take(const spec::ExpectedTensor& expected);
  Status FindUnused(bool strict);
  StatusOr<StoredView> ToF32(const StoredView& view, const Shape& shape);
  StatusOr<StoredView> ToTable(const StoredView& view, const std::string& name);
  StatusOr<ConstTensorView> NewTensor(DType dtype, const Shape& shape,
                                      void*& data);

  std::string path_;
  GgufSet set_;
  spec::ModelConfig config_;
  CheckpointReport report_;
  std::unordered_map<std::string, StoredView> views_;
  std::unordered_map<std::string_view, bool> used_;
  std::map<std::string, Sum> by_type_;
  std::vector<Buffer> converted_;
};

}  // namespace belay::checkpoint::gguf

#endif  // BELAY_CHECKPOINT_GGUF_MODEL_H_
