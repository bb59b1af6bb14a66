// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: an error with an id, or views that lie
// inside the bytes.
#include <cstdint>
#include <span>

#include "base/error.h"
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  using belay::checkpoint::SafetensorsFile;
  const auto file = SafetensorsFile::FromBytes(
      std::as_bytes(std::span(data, n_bytes)), "fuzz");
  if (!file.ok()) {
    BELAY_CHECK(!belay::ErrorIdOf(file.status()).empty());
    return 0;
  }
  uint64_t sum = 0;
  for (const auto& tensor : (*file)->tensors()) {
    BELAY_CHECK(tensor.offset + tensor.view.bytes() <= n_bytes);
    const auto* bytes = static_cast<const uint8_t*>(tensor.view.data());
    for (size_t i = 0; i < tensor.view.bytes(); ++i) sum += bytes[i];
    BELAY_CHECK((*file)->Find(tensor.name) == &tensor);
  }
  return sum == UINT64_MAX ? -1 : 0;
}
