// SPDX-License-Identifier: Apache-2.0
// Official checkpoint -> GGUF file that llama.cpp loads.
#ifndef BELAY_CHECKPOINT_GGUF_CONVERT_H_
#define BELAY_CHECKPOINT_GGUF_CONVERT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/writer.h"

namespace belay::checkpoint::gguf {

enum class ExpertType : uint8_t {
  // FP4 experts as MXFP4, without loss: the same codes and scales in another
  // order. FP8 experts (the -Base checkpoints) become Q8_0 all the same.
  kMxfp4,
  kQ8_0,
};

struct ConvertOptions {
  std::string out;
  ExpertType experts = ExpertType::kMxfp4;
  bool mtp = false;  // MTP blocks too, as blk.N.nextn.*
  // Adds what the checkpoint's tensors do not say: name and tokenizer.
  std::function<void(HeaderBuilder&)> add_metadata;
  // Called with bytes written or compared, from the calling thread; an error
  // ends the work and leaves no file.
  std::function<Status(uint64_t done, uint64_t total)> progress;
};

struct Converted {
  int64_t n_tensors = 0;
  uint64_t bytes = 0;  // of tensors
};

// The types of llama.cpp's own converter: FP8 linears Q8_0, routed experts as
// asked, BF16 matrices BF16, everything else F32 (expert tables I32). Streams:
// a few rows are in memory at a time. Errors: SYS-002, what `progress` says.
StatusOr<Converted> ConvertToGguf(const Checkpoint& checkpoint,
                                  const ConvertOptions& options);

// Opens options.out as a model and compares every tensor with what
// ConvertToGguf writes. Errors: what GgufModel::Open says, CONF-005 (another
// config), CKPT-013 (a tensor that differs).
Status VerifyGguf(const Checkpoint& checkpoint, const ConvertOptions& options);

}  // namespace belay::checkpoint::gguf

#endif  // BELAY_CHECKPOINT_GGUF_CONVERT_H_
