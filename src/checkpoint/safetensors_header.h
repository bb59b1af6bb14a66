// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file. Private to this room.
#ifndef BELAY_CHECKPOINT_SAFETENSORS_HEADER_H_
#define BELAY_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace belay::checkpoint {

struct HeaderEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  uint64_t begin = 0;  // data_offsets, from the end of the header
  uint64_t end = 0;
};

struct Header {
  std::vector<HeaderEntry> entries;  // in the order of their offsets
  std::map<std::string, std::string> metadata;
};

// Reads the header text and checks what can be checked without the data: the
// entries are well formed and follow each other without hole or overlap from
// offset 0, each as long as dtype and shape say. Errors: CKPT-003, CKPT-004,
// CKPT-012, their place within the file in `where`.
StatusOr<Header> ParseHeader(std::string_view json);

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_SAFETENSORS_HEADER_H_
