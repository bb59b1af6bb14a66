// SPDX-License-Identifier: Apache-2.0
// The tensor types of GGUF files: which number is which, and how large.
// Source: the table of types of ggml (ggml.h of ggml-org/llama.cpp) as facts.
#ifndef BELAY_CHECKPOINT_GGUF_TYPES_H_
#define BELAY_CHECKPOINT_GGUF_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/block_format.h"
#include "tensor/dtype.h"

namespace belay::checkpoint::gguf {

inline constexpr uint32_t kTypeF32 = 0;
inline constexpr uint32_t kTypeQ8_0 = 8;
inline constexpr uint32_t kTypeI32 = 26;
inline constexpr uint32_t kTypeBf16 = 30;
inline constexpr uint32_t kTypeMxfp4 = 39;

// A type that Belay reads: plain elements (format kNone) or blocks.
struct ElementType {
  DType dtype = DType::kF32;  // kU8 for blocks
  BlockFormat format = BlockFormat::kNone;

  // Bytes of n values; `n` is a multiple of the block.
  uint64_t bytes(uint64_t n) const {
    if (format == BlockFormat::kNone) return n * DtypeBytes(dtype);
    return n / static_cast<uint64_t>(BlockValues(format)) * BlockBytes(format);
  }
};

// Nothing for a type that Belay cannot read.
std::optional<ElementType> FindType(uint32_t type);

// "Q4_K", "IQ2_XXS" (types that we only know by name too), "type 77".
std::string TypeName(uint32_t type);

}  // namespace belay::checkpoint::gguf

#endif  // BELAY_CHECKPOINT_GGUF_TYPES_H_
