// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf/types.h"

#include <algorithm>
#include <iterator>

namespace belay::checkpoint::gguf {
namespace {

struct TypeRow {
  uint32_t type;
  std::string_view name;
  // False: known by name only, to say what a file holds.
  bool readable = false;
  ElementType element = {};
};

constexpr ElementType Blocks(BlockFormat format) {
  return {DType::kU8, format};
}

constexpr TypeRow kTypes[] = {
    {0, "F32", true, {DType::kF32}},
    {1, "F16", true, {DType::kF16}},
    {2, "Q4_0"},
    {3, "Q4_1"},
    {6, "Q5_0"},
    {7, "Q5_1"},
    {8, "Q8_0", true, Blocks(BlockFormat::kQ8_0)},
    {9, "Q8_1"},
    {10, "Q2_K", true, Blocks(BlockFormat::kQ2K)},
    {11, "Q3_K", true, Blocks(BlockFormat::kQ3K)},
    {12, "Q4_K", true, Blocks(BlockFormat::kQ4K)},
    {13, "Q5_K", true, Blocks(BlockFormat::kQ5K)},
    {14, "Q6_K", true, Blocks(BlockFormat::kQ6K)},
    {15, "Q8_K"},
    {16, "IQ2_XXS"},
    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},
    {19, "IQ1_S"},
    {20, "IQ4_NL"},
    {21, "IQ3_S"},
    {22, "IQ2_S"},
    {23, "IQ4_XS"},
    {24, "I8"},
    {25, "I16"},
    {26, "I32", true, {DType::kI32}},
    {27, "I64"},
    {28, "F64"},
    {29, "IQ1_M"},
    {30, "BF16", true, {DType::kBF16}},
    {34, "TQ1_0"},
    {35, "TQ2_0"},
    {39, "MXFP4", true, Blocks(BlockFormat::kMxfp4)},
    {40, "NVFP4"},
};

const TypeRow* Find(uint32_t type) {
  const auto* const row =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [&](const TypeRow& r) { return r.type == type; });
  return row == std::end(kTypes) ? nullptr : row;
}

}  // namespace

std::optional<ElementType> FindType(uint32_t type) {
  const TypeRow* const row = Find(type);
  if (row == nullptr || !row->readable) return std::nullopt;
  return row->element;
}

std::string TypeName(uint32_t type) {
  const TypeRow* const row = Find(type);
  return row == nullptr ? "type " + std::to_string(type)
                        : std::string(row->name);
}

}  // namespace belay::checkpoint::gguf
