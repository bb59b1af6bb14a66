// SPDX-License-Identifier: Apache-2.0
// ModelConfig <-> the metadata of a GGUF file of architecture "deepseek4".
// Source of the keys: llama.cpp (llama-arch.cpp, models/deepseek4.cpp,
// conversion/deepseek.py) as facts; docs/gguf.md lists them.
#ifndef BELAY_CHECKPOINT_GGUF_CONFIG_H_
#define BELAY_CHECKPOINT_GGUF_CONFIG_H_

#include <string>

#include "base/error.h"
#include "checkpoint/gguf/file.h"
#include "spec/config.h"

namespace belay::checkpoint::gguf {

// The config that the metadata of `set` gives. MTP layers count only when their
// tensors are there (llama.cpp's blk.N.nextn.*, N from block_count - 1 down, or
// ds4's mtp.N.*); compress_ratios may have an entry for each of them or not.
// The format of experts is not a fact of the metadata: expert_format stays
// kFp4, each tensor says its own type. Errors: GGUF-003 (another architecture),
// CONF-001 (a key is missing), CONF-003 (wrong type or range), CONF-005.
// `where` names the file in errors.
StatusOr<spec::ModelConfig> ConfigFromMetadata(const GgufSet& set,
                                               const std::string& where);

}  // namespace belay::checkpoint::gguf

#endif  // BELAY_CHECKPOINT_GGUF_CONFIG_H_
