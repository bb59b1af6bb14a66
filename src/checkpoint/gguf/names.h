// SPDX-License-Identifier: Apache-2.0
// The official names of tensors in the spellings of GGUF files: llama.cpp's,
// ik_llama.cpp's and ds4's.
#ifndef BELAY_CHECKPOINT_GGUF_NAMES_H_
#define BELAY_CHECKPOINT_GGUF_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spec/config.h"

namespace belay::checkpoint::gguf {

// Which part of a GGUF tensor an official tensor is.
enum class Part : uint8_t {
  kWhole,
  kExpert,     // matrix `expert` of a stack [n_experts, n_out, n_in]
  kLeftHalf,   // the first half of every row: e_proj of eh_proj
  kRightHalf,  // h_proj
};

struct Place {
  std::string name;
  Part part = Part::kWhole;
  int64_t expert = 0;
};

// Where the tensor that the official checkpoint calls `official` may be, the
// usual place (llama.cpp's) first. Empty for a name that GGUF files have no
// place for (".scale").
std::vector<Place> PlacesOf(const spec::ModelConfig& config,
                            std::string_view official);

}  // namespace belay::checkpoint::gguf

#endif  // BELAY_CHECKPOINT_GGUF_NAMES_H_
