// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file: an error with an id, or tensors that lie inside the
// bytes, and a config or an error with an id.
#include <cstdint>
#include <span>

#include "base/error.h"
#include "checkpoint/gguf/config.h"
#include "checkpoint/gguf/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  using belay::checkpoint::gguf::GgufFile;
  auto file =
      GgufFile::FromBytes(std::as_bytes(std::span(data, n_bytes)), "fuzz");
  if (!file.ok()) {
    BELAY_CHECK(!belay::ErrorIdOf(file.status()).empty());
    return 0;
  }
  uint64_t sum = 0;
  belay::checkpoint::gguf::GgufSet set;
  for (const auto& tensor : (*file)->tensors()) {
    set.tensors.emplace(tensor.name, &tensor);
    const auto view = ViewOf(tensor);
    if (!view.ok()) {
      BELAY_CHECK(!belay::ErrorIdOf(view.status()).empty());
      continue;
    }
    BELAY_CHECK(view->view.bytes() == tensor.bytes);
    BELAY_CHECK(tensor.offset + tensor.bytes <= n_bytes);
    for (size_t i = 0; i < tensor.bytes; ++i) {
      sum += static_cast<uint8_t>(tensor.data[i]);
    }
  }
  set.files.push_back(std::move(*file));
  const auto config = belay::checkpoint::gguf::ConfigFromMetadata(set, "fuzz");
  BELAY_CHECK(config.ok() || !belay::ErrorIdOf(config.status()).empty());
  return sum == UINT64_MAX ? -1 : 0;
}
