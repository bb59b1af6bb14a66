// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files, version 3, alignment 32.
#ifndef BELAY_CHECKPOINT_GGUF_WRITER_H_
#define BELAY_CHECKPOINT_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "tensor/shape.h"

namespace belay::checkpoint::gguf {

inline constexpr uint64_t kAlignment = 32;

// What stands before the data.
class HeaderBuilder {
 public:
  void AddU32(std::string_view key, uint32_t value);
  void AddF32(std::string_view key, float value);
  void AddBool(std::string_view key, bool value);
  void AddText(std::string_view key, std::string_view value);
  void AddI32s(std::string_view key, std::span<const int32_t> values);
  void AddF32s(std::string_view key, std::span<const float> values);
  void AddTexts(std::string_view key, std::span<const std::string> values);

  // `shape` is outermost first; `type` one that FindType knows. Tensors are
  // written in this order. Names of up to 63 bytes, as ggml has it.
  void AddTensor(std::string_view name, const Shape& shape, uint32_t type);

  // Everything up to the first byte of data, padded.
  std::string Text() const;
  // Bytes of the data of each tensor, without padding.
  const std::vector<uint64_t>& tensor_bytes() const { return tensor_bytes_; }

 private:
  void Key(std::string_view key, uint32_t type);

  std::string values_;
  std::string infos_;
  uint64_t n_values_ = 0;
  uint64_t offset_ = 0;
  std::vector<uint64_t> tensor_bytes_;
};

// Streams the data behind a header. SYS-002 on failure; nothing is visible
// under the final name before Finish().
class GgufWriter {
 public:
  static StatusOr<std::unique_ptr<GgufWriter>> Create(
      const std::string& path, const HeaderBuilder& header);

  // The next bytes of the data, in pieces of any size; a tensor's padding
  // follows by itself. CHECKs that no more comes than the header says.
  Status Append(std::span<const std::byte> bytes);
  // CHECKs that everything has come.
  Status Finish();

 private:
  GgufWriter(std::unique_ptr<AtomicFileWriter> file,
             std::vector<uint64_t> tensor_bytes)
      : file_(std::move(file)), tensor_bytes_(std::move(tensor_bytes)) {}

  std::unique_ptr<AtomicFileWriter> file_;
  std::vector<uint64_t> tensor_bytes_;
  size_t tensor_ = 0;
  uint64_t written_ = 0;  // of this tensor
};

}  // namespace belay::checkpoint::gguf

#endif  // BELAY_CHECKPOINT_GGUF_WRITER_H_
